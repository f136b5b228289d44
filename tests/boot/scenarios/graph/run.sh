systemctl show -p Id,ActiveState,ActiveEnterTimestampMonotonic '*.service' '*.target' >"$OUT/units"
