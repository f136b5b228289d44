// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel user of an RDMA device, as NFS or NVMe over RDMA is one: it owns a
 * protection domain of the device named dev= until it is unloaded, or until
 * the device goes.
 */
#include <linux/err.h>
#include <linux/module.h>
#include <linux/string.h>
#include <rdma/ib_verbs.h>

static char *dev = "";
module_param(dev, charp, 0400);
MODULE_PARM_DESC(dev, "name of the RDMA device to use");

static struct ib_client user_client;

static int user_add(struct ib_device *device)
{
	struct ib_pd *pd;

	if (strcmp(dev_name(&device->dev), dev))
		return -EOPNOTSUPP;
	pd = ib_alloc_pd(device, 0);
	if (IS_ERR(pd))
		return PTR_ERR(pd);
	ib_set_client_data(device, &user_client, pd);
	return 0;
}

static void user_remove(struct ib_device *device, void *pd)
{
	ib_dealloc_pd(pd);
}

static struct ib_client user_client = {
	.name = "ibsim_user",
	.add = user_add,
	.remove = user_remove,
};

static int __init user_init(void)
{
	return ib_register_client(&user_client);
}

static void __exit user_exit(void)
{
	ib_unregister_client(&user_client);
}

module_init(user_init);
module_exit(user_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A kernel user of an RDMA device, for tests");
