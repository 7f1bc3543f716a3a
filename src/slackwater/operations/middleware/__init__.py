"""Steers engines from outside, through the kernel: collect → decide → enforce, for each policy.

``file`` is the configuration, ``task`` one policy with its scope, ``engine`` one engine with what
is known of it, ``loop`` the loop over both, ``control`` how a running one is asked and told.
"""
