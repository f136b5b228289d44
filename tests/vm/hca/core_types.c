// SPDX-License-Identifier: GPL-2.0-only
/*
 * mlx4's port types: <function>/mlx4_port1 and mlx4_port2. A port that gets another type has the
 * function's ports taken away and registered anew, netdevs and RDMA device alike.
 */
#include <linux/device.h>
#include <linux/pci.h>
#include <linux/sysfs.h>
#include "sim.h"

static unsigned int port_of(struct device_attribute *attr)
{
	return (unsigned long)container_of(attr, struct dev_ext_attribute,
					   attr)->var;
}

static ssize_t type_show(struct device *dev, struct device_attribute *attr,
			 char *buf)
{
	struct sim_func *f = pci_get_drvdata(to_pci_dev(dev));

	return sysfs_emit(buf, "%s\n",
			  sim_port_is_eth(f, port_of(attr)) ? "eth" : "ib");
}

static ssize_t type_store(struct device *dev, struct device_attribute *attr,
			  const char *buf, size_t len)
{
	struct sim_func *f = pci_get_drvdata(to_pci_dev(dev));
	unsigned int port = port_of(attr);
	char rule[48];
	int err = 0;
	bool eth;

	sim_count(f, SIM_C_sysfs_write);
	eth = sysfs_streq(buf, "eth");
	if (!eth && !sysfs_streq(buf, "ib"))
		return -EINVAL;
	mutex_lock(&f->enable_lock);
	if (eth != sim_port_is_eth(f, port)) {
		snprintf(rule, sizeof(rule), "%s/link_layer%u=%s",
			 dev_name(dev), port, eth ? "eth" : "ib");
		sim_rdma_del(f);
		err = sim_knobs_add(rule);
		err = sim_rdma_add(f) ?: err;
	}
	mutex_unlock(&f->enable_lock);
	return err ?: len;
}

#define TYPE_ATTR(port)							\
	{ __ATTR(mlx4_port##port, 0644, type_show, type_store),		\
	  (void *)port##UL }

static struct dev_ext_attribute types[SIM_MAX_PORTS] = {
	TYPE_ATTR(1), TYPE_ATTR(2),
};

int sim_types_init(struct sim_func *f)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !f->is_vf && i < f->nports && !err; i++)
		err = device_create_file(&f->pdev->dev, &types[i].attr);
	return err;
}

/* After this nobody registers the ports anew. */
void sim_types_exit(struct sim_func *f)
{
	unsigned int i;

	for (i = 0; !f->is_vf && i < f->nports; i++)
		device_remove_file(&f->pdev->dev, &types[i].attr);
}
