/*
 * links SIZE: asks for all links with their VFs, offers the kernel SIZE bytes for each
 * part of the answer, and prints how many VFs with GUIDs were in it, and how it ended:
 * "64 whole", "0 EMSGSIZE", "12 truncated".
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static int vfs;

/* Attributes nested in attributes: the GUID of a VF is three levels down. */
static void count(struct rtattr *a, int len, const int *path)
{
	for (; RTA_OK(a, len); a = RTA_NEXT(a, len)) {
		if ((a->rta_type & NLA_TYPE_MASK) != *path)
			continue;
		if (!path[1])
			vfs++;
		else
			count(RTA_DATA(a), RTA_PAYLOAD(a), path + 1);
	}
}

static void end(const char *how)
{
	printf("%d %s\n", vfs, how);
	exit(0);
}

int main(int argc, char **argv)
{
	static const int path[] = { IFLA_VFINFO_LIST, IFLA_VF_INFO, IFLA_VF_IB_NODE_GUID, 0 };
	struct { struct nlmsghdr h; struct ifinfomsg i; struct rtattr a; __u32 mask; } ask = {
		.h = { sizeof(ask), RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1 },
		.a = { sizeof(ask.a) + sizeof(ask.mask), IFLA_EXT_MASK },
		.mask = RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS,
	};
	int size = atoi(argv[argc - 1]);
	int link = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	char *answer = malloc(size);

	if (send(link, &ask, sizeof(ask), 0) < 0)
		end(strerror(errno));
	for (;;) {
		struct nlmsghdr *h = (void *)answer;
		int len = recv(link, answer, size, MSG_TRUNC);

		if (len < 0)
			end(strerror(errno));
		if (len > size)
			end("truncated");
		for (; NLMSG_OK(h, len); h = NLMSG_NEXT(h, len)) {
			int *error = NLMSG_DATA(h);

			if (h->nlmsg_type == RTM_NEWLINK)
				count(IFLA_RTA(NLMSG_DATA(h)), IFLA_PAYLOAD(h), path);
			else if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
				end(*error == -EMSGSIZE ? "EMSGSIZE" : *error ? "failed" : "whole");
		}
	}
}
