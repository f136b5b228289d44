ibprov check --format json >"$OUT/faults.json" 2>"$OUT/faults.err"
echo "faults: $?"
systemctl show -p Id,ActiveState,Result,ActiveEnterTimestampMonotonic '*.service' '*.target' >"$OUT/units"
# This boot's journal with a fault in it, as journald has it and in every form that
# is mailed. The second line makes a field that is kept as bytes.
logger -t kernel 'mlx5_core 0000:4b:00.0: firmware version: 20.31.1014'
logger -t kernel "mlx5_core 0000:4b:00.0: $(printf '\033[31mib0\033[0m')"
logger -t kernel 'mlx5_core 0000:4b:00.0: mlx5_load_one failed with error code -22'
logger -t kernel 'mlx5_core: probe of 0000:4b:00.0 failed with error -22'
journalctl --sync
cp -r /run/log/journal "$OUT/journal"
for form in json export short short-iso short-monotonic; do
	journalctl --no-pager -o $form -D "$OUT/journal" >"$OUT/journal.$form"
done
exit 0
