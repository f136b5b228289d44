/*
 * by-hand PF N: N VFs with their GUIDs, by the fewest kernel calls that are
 * known: automatic probing off, number, GUIDs and policy, one bind each, eight
 * at the same time. What ibprov is compared with; it looks at nothing.
 */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

int main(int argc, char **argv)
{
	char path[PATH_MAX], value[64];
	pthread_t threads[8];
	int i;

	if (argc != 3)
		return 2;
	pf = argv[1];
	vfs = atoi(argv[2]);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov_drivers_autoprobe", pf);
	put(path, "0");
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov_numvfs", pf);
	put(path, argv[2]);
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
	for (i = 0; i < 8; i++)
		pthread_create(&threads[i], NULL, bind_some, NULL);
	for (i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/sriov_drivers_autoprobe", pf);
	put(path, "1");
	return 0;
}
