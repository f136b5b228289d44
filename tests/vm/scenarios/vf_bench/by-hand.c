/*
 * by-hand PF N [PREFIX]: N VFs with their GUIDs, by the fewest kernel calls that
 * are known: automatic probing off, number, GUIDs and policy, one bind each, eight
 * at the same time. GUIDs go to MLNX_OFED's files, or, where there are none, by
 * netlink to the PF's netdev, ib0. With PREFIX a rule of udev names each VF's netdev
 * PREFIX0, PREFIX1 ... and the end is when the last has its name. What ibprov is
 * compared with; it looks at nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *pf;
static int vfs;
static atomic_int next;

static void put(const char *path, const char *value)
{
	int fd = open(path, O_WRONLY);

	if (fd < 0 || write(fd, value, strlen(value)) < 0) {
		perror(path);
		exit(1);
	}
	close(fd);
}

static void *bind_some(void *unused)
{
	char path[PATH_MAX], link[PATH_MAX], *vf;
	ssize_t n;
	int i;

	while ((i = atomic_fetch_add(&next, 1)) < vfs) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/virtfn%d", pf, i);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0) {
			perror(path);
			exit(1);
		}
		link[n] = 0;
		vf = strrchr(link, '/') + 1;
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver_override", vf);
		put(path, "mlx5_core");
		put("/sys/bus/pci/drivers/mlx5_core/bind", vf);
		put(path, "\n");
	}
	return unused;
}

/* The rules, before the first VF is there. */
static void name_all(const char *prefix)
{
	const char *rules = "/run/udev/rules.d/61-by-hand.rules";
	char path[PATH_MAX], link[PATH_MAX];
	FILE *file;
	ssize_t n;
	int i;

	if (mkdir("/run/udev/rules.d", 0755) && errno != EEXIST)
		exit(1);
	file = fopen(rules, "w");
	if (!file) {
		perror(rules);
		exit(1);
	}
	for (i = 0; i < vfs; i++) {
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/virtfn%d", pf, i);
		n = readlink(path, link, sizeof(link) - 1);
		if (n < 0) {
			perror(path);
			exit(1);
		}
		link[n] = 0;
		fprintf(file, "ACTION!=\"remove\", SUBSYSTEM==\"net\", ATTR{type}==\"32\", SUBSYSTEMS==\"pci\", KERNELS==\"%s\", NAME=\"%s%d\"\n",
			strrchr(link, '/') + 1, prefix, i);
	}
	fclose(file);
	if (system("udevadm control --reload"))
		exit(1);
}

static void wait_for_names(const char *prefix)
{
	char path[PATH_MAX];
	int i;

	for (i = 0; i < vfs; i++) {
		snprintf(path, sizeof(path), "/sys/class/net/%s%d", prefix, i);
		while (access(path, F_OK))
			usleep(2000);
	}
}

static void guids_by_files(void)
{
	char path[PATH_MAX], value[64];
	int i;

	for (i = 0; i < vfs; i++) {
		snprintf(value, sizeof(value), "02:00:00:70:00:00:00:%02x", i);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov/%d/node", pf, i);
		put(path, value);
		snprintf(value, sizeof(value), "02:00:00:70:00:01:00:%02x", i);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov/%d/port", pf, i);
		put(path, value);
		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov/%d/policy", pf, i);
		put(path, "Follow");
	}
}

static void guids_by_netlink(void)
{
	FILE *batch = popen("ip -batch -", "w");
	int i;

	for (i = 0; i < vfs; i++) {
		fprintf(batch, "link set ib0 vf %d node_guid 02:00:00:70:00:00:00:%02x\n", i, i);
		fprintf(batch, "link set ib0 vf %d port_guid 02:00:00:70:00:01:00:%02x\n", i, i);
		fprintf(batch, "link set ib0 vf %d state auto\n", i);
	}
	if (pclose(batch))
		exit(1);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];
	pthread_t threads[8];
	int i;

	if (argc < 3)
		return 2;
	pf = argv[1];
	vfs = atoi(argv[2]);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov_drivers_autoprobe", pf);
	put(path, "0");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov_numvfs", pf);
	put(path, argv[2]);
	if (argc > 3)
		name_all(argv[3]);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov", pf);
	if (access(path, F_OK))
		guids_by_netlink();
	else
		guids_by_files();
	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, bind_some, NULL);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov_drivers_autoprobe", pf);
	put(path, "1");
	if (argc > 3)
		wait_for_names(argv[3]);
	return 0;
}
