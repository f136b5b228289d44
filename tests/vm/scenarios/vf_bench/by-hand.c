/*
 * by-hand PF N [NETDEV RDMA]: N VFs with their GUIDs, by the fewest kernel calls that
 * are known: automatic probing off, number, GUIDs and policy, one bind each, eight
 * at the same time. GUIDs go to MLNX_OFED's files, or, where there are none, by
 * netlink to the PF's netdev, ib0. With NETDEV and RDMA a rule of udev names each VF's
 * netdev NETDEV0, NETDEV1 ..., who has bound a VF names its RDMA device RDMA0, RDMA1 ...
 * by RDMA netlink, and the end is when the last has its names. What ibprov is compared
 * with; it looks at nothing.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

static const char *pf, *rdma_prefix;
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

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static int rdma_socket(void)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);

	if (fd < 0 || connect(fd, (struct sockaddr *)&kernel, sizeof(kernel)))
		fail("RDMA netlink");
	return fd;
}

/* The kernel's number of an RDMA device, which one dump of all devices tells. */
static unsigned int rdma_index(int fd, const char *name)
{
	struct nlmsghdr ask = {
		.nlmsg_len = sizeof(ask),
		.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_GET),
		.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
	};
	static __thread char answer[65536];
	unsigned int found = -1;
	struct nlmsghdr *one;
	int n;

	if (send(fd, &ask, sizeof(ask), 0) < 0)
		fail("RDMA netlink");
	while ((n = recv(fd, answer, sizeof(answer), 0)) > 0) {
		for (one = (struct nlmsghdr *)answer; NLMSG_OK(one, n); one = NLMSG_NEXT(one, n)) {
			char *at = NLMSG_DATA(one), *end = (char *)one + one->nlmsg_len;
			unsigned int index = -1;
			int is_it = 0;

			if (one->nlmsg_type == NLMSG_DONE)
				return found;
			while (at + NLA_HDRLEN <= end) {
				struct nlattr *attribute = (struct nlattr *)at;

				if (attribute->nla_type == RDMA_NLDEV_ATTR_DEV_INDEX)
					memcpy(&index, at + NLA_HDRLEN, sizeof(index));
				if (attribute->nla_type == RDMA_NLDEV_ATTR_DEV_NAME)
					is_it = !strcmp(at + NLA_HDRLEN, name);
				at += NLA_ALIGN(attribute->nla_len);
			}
			if (is_it)
				found = index;
		}
	}
	fail("RDMA netlink");
	return -1;
}

static void name_rdma(const char *vf, const char *name)
{
	struct {
		struct nlmsghdr head;
		struct nlattr index_head;
		unsigned int index;
		struct nlattr name_head;
		char name[64];
	} set = {
		.head.nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_SET),
		.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK,
		.index_head = { NLA_HDRLEN + sizeof(set.index), RDMA_NLDEV_ATTR_DEV_INDEX },
		.name_head = { NLA_HDRLEN + strlen(name) + 1, RDMA_NLDEV_ATTR_DEV_NAME },
	};
	char path[PATH_MAX], answer[4096];
	struct nlmsgerr *error = NLMSG_DATA((struct nlmsghdr *)answer);
	struct dirent *entry;
	int fd = rdma_socket();
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/infiniband", vf);
	dir = opendir(path);
	if (!dir)
		fail(path);
	while ((entry = readdir(dir)) && entry->d_name[0] == '.')
		;
	if (!entry)
		fail(path);
	set.index = rdma_index(fd, entry->d_name);
	closedir(dir);
	strcpy(set.name, name);
	set.head.nlmsg_len = offsetof(typeof(set), name) + NLA_ALIGN(strlen(name) + 1);
	if (send(fd, &set, set.head.nlmsg_len, 0) < 0 || recv(fd, answer, sizeof(answer), 0) < 0)
		fail(path);
	errno = -error->error;
	if (errno)
		fail(path);
	close(fd);
}

static void *bind_some(void *unused)
{
	char path[PATH_MAX], link[PATH_MAX], name[64], *vf;
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
		if (!rdma_prefix)
			continue;
		snprintf(name, sizeof(name), "%s%d", rdma_prefix, i);
		name_rdma(vf, name);
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
	if (argc > 4) {
		rdma_prefix = argv[4];
		name_all(argv[3]);
	}
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
	if (rdma_prefix)
		wait_for_names(argv[3]);
	return 0;
}
