systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
cp /run/from-override "$OUT/from-override"
