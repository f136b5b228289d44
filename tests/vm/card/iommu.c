// SPDX-License-Identifier: GPL-2.0-only
/*
 * An IOMMU that puts each function into a group of its own and translates
 * nothing: vfio-pci takes no function without a group.  A group can be opened,
 * but no VFIO container can be made of it.
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>
#include "card.h"

static bool iommu;
module_param(iommu, bool, 0400);
MODULE_PARM_DESC(iommu, "put functions into IOMMU groups");

/* What an IOMMU's driver has to offer changes with every other kernel. */
#define IOMMU_NEWEST (LINUX_VERSION_CODE >= KERNEL_VERSION(7, 2, 0))
#define IOMMU_NEWER (LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0) && \
		     LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0))
#define IOMMU_OLDER (LINUX_VERSION_CODE >= KERNEL_VERSION(5, 10, 0) && \
		     LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0))
#if IOMMU_NEWEST || IOMMU_NEWER || IOMMU_OLDER

static struct iommu_device unit;
static bool registered;

#if IOMMU_NEWEST || IOMMU_NEWER
static bool group_capable(struct device *dev, enum iommu_cap cap)
#else
static bool group_capable(enum iommu_cap cap)
#endif
{
	return cap == IOMMU_CAP_CACHE_COHERENCY;
}

#if IOMMU_NEWEST
static int group_attach(struct iommu_domain *domain, struct device *dev,
			struct iommu_domain *old)
{
	return 0;
}

static struct iommu_domain group_domain = {
	.type = IOMMU_DOMAIN_IDENTITY,
	.ops = &(const struct iommu_domain_ops) {
		.attach_dev = group_attach,
	},
};
#else
static struct iommu_domain *group_domain(unsigned int type)
{
	if (type != IOMMU_DOMAIN_IDENTITY)
		return NULL;
	return kzalloc(sizeof(struct iommu_domain), GFP_KERNEL);
}

static int group_domain_type(struct device *dev)
{
	return IOMMU_DOMAIN_IDENTITY;
}

static int group_attach(struct iommu_domain *domain, struct device *dev)
{
	return 0;
}

static void group_free(struct iommu_domain *domain)
{
	kfree(domain);
}
#endif

static struct iommu_device *group_probe(struct device *dev)
{
	if (!dev_is_pci(dev) || pci_domain_nr(to_pci_dev(dev)->bus) != CARD_DOMAIN)
		return ERR_PTR(-ENODEV);
	return &unit;
}

static void group_release(struct device *dev)
{
}

/* iommu_device_set_ops() writes to it. */
static struct iommu_ops group_ops = {
	.capable = group_capable,
	.probe_device = group_probe,
	.release_device = group_release,
	.device_group = generic_device_group,
#if IOMMU_NEWEST
	.owner = THIS_MODULE,
	.identity_domain = &group_domain,
	.default_domain = &group_domain,
	.blocked_domain = &group_domain,
#else
	.domain_alloc = group_domain,
	.def_domain_type = group_domain_type,
	.pgsize_bitmap = PAGE_SIZE,
#endif
#if IOMMU_NEWER
	.owner = THIS_MODULE,
	.default_domain_ops = &(const struct iommu_domain_ops) {
		.attach_dev = group_attach,
		.free = group_free,
	},
#elif IOMMU_OLDER
	.attach_dev = group_attach,
	.domain_free = group_free,
#endif
};

static int group_register(void)
{
#if IOMMU_NEWEST || IOMMU_NEWER
	return iommu_device_register(&unit, &group_ops, NULL);
#else
	int err;

	iommu_device_set_ops(&unit, &group_ops);
	err = iommu_device_register(&unit);
	if (err)
		return err;
	/* The bus never lets go of it. */
	__module_get(THIS_MODULE);
	return bus_set_iommu(&pci_bus_type, &group_ops);
#endif
}

int iommu_start(void)
{
	int err;

	if (!iommu)
		return 0;
	err = iommu_device_sysfs_add(&unit, NULL, NULL, CARD_NAME);
	if (err)
		return err;
	err = group_register();
	if (err)
		iommu_device_sysfs_remove(&unit);
	registered = !err;
	return err;
}

void iommu_stop(void)
{
	if (!registered)
		return;
	iommu_device_unregister(&unit);
	iommu_device_sysfs_remove(&unit);
}

#else

int iommu_start(void)
{
	return iommu ? -EOPNOTSUPP : 0;
}

void iommu_stop(void)
{
}

#endif
