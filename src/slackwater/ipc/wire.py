"""Former names, until nobody uses them."""

from slackwater.ipc.client import refuse_if_answered as refuse_if_answered
from slackwater.ipc.unix_socket import default_fleet_name as own_name
from slackwater.ipc.unix_socket import runtime_dir as runtime_dir
from slackwater.ipc.unix_socket import socket_path as socket_path

__all__ = ["own_name"]
