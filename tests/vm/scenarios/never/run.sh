systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
cp /run/ibprov/boot.json "$OUT/boot-first.json"
systemctl show -p ActiveState,Result,ExecMainStatus,StatusText ibprov.service >"$OUT/unit"

# A signal in the middle of the wait.
timeout --preserve-status --signal=TERM 3 ibprov boot >"$OUT/interrupted.text" 2>&1
echo "interrupted: $?"
cp /run/ibprov/boot.json "$OUT/interrupted.json"

# Two at once: the second begins when the first is through.
printf '[boot]\ntimeout = "30s"\nadapter-timeout = "4s"\n' >/run/short.toml
ibprov --config /run/short.toml --format json boot >"$OUT/first.json" 2>/dev/null &
first=$!
ibprov --config /run/short.toml --format json boot >"$OUT/second.json" 2>/dev/null
wait "$first"
echo "first of two: $?"
