[ -e /sys/class/infiniband ] || echo "no InfiniBand"
echo yes >"$OUT/left-by-script"
