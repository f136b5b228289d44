[ -e /sys/class/net/fabric0 ] && [ -e /sys/class/net/storage0 ]
