"""Tests of enforcement."""
