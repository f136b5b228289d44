systemctl show -p Result --value networking.service >"$OUT/networking"
ip -br addr >"$OUT/addr"
ls /sys/class/infiniband >"$OUT/rdma"
for set in rdma infiniband; do
	systemctl show -p Id,ActiveState,Result "rdma-load-modules@$set.service" >"$OUT/load-$set"
done
systemctl show -p ActiveState,Result,StatusText ibprov.service >"$OUT/unit"
ibprov status -v >"$OUT/status"
echo "status: $?"
