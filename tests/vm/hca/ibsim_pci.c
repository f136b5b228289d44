// SPDX-License-Identifier: GPL-2.0-only
/*
 * Gives emulated PCI functions the identity of an HCA, before udev and any
 * driver look at them.  Only the kernel's own record is changed (sysfs,
 * uevents, driver matching); the configuration space stays the emulator's.
 *
 *   map=BDF=VENDOR:DEVICE:CLASS[,...]     all hexadecimal
 *
 * A VF takes vendor and class from its PF and the PF's device number + 1,
 * which is how ConnectX numbers its VFs.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>

#define MAX_MAP 32

struct identity {
	char bdf[16];
	u16 vendor;
	u16 device;
	u32 class;
};

static struct identity map[MAX_MAP];
static int map_len;

static int map_set(const char *text, const struct kernel_param *kp)
{
	char *copy, *cursor, *one;
	int err = 0;

	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	cursor = copy;
	while ((one = strsep(&cursor, ", \n"))) {
		struct identity *id = &map[map_len];
		unsigned int vendor, device, class;

		if (!*one)
			continue;
		if (map_len == MAX_MAP ||
		    sscanf(one, "%15[^=]=%x:%x:%x", id->bdf, &vendor, &device,
			   &class) != 4 ||
		    vendor > 0xffff || device > 0xffff || class > 0xffffff) {
			pr_err("ibsim_pci: map entry not understood: %s\n", one);
			err = -EINVAL;
			break;
		}
		id->vendor = vendor;
		id->device = device;
		id->class = class;
		map_len++;
	}
	kfree(copy);
	return err;
}

static int map_get(char *buf, const struct kernel_param *kp)
{
	int i, n = 0;

	for (i = 0; i < map_len; i++)
		n += scnprintf(buf + n, PAGE_SIZE - n, "%s=%04x:%04x:%06x\n",
			       map[i].bdf, map[i].vendor, map[i].device,
			       map[i].class);
	return n;
}

static const struct kernel_param_ops map_ops = {
	.set = map_set,
	.get = map_get,
};
module_param_cb(map, &map_ops, NULL, 0400);
MODULE_PARM_DESC(map, "BDF=VENDOR:DEVICE:CLASS[,...] in hexadecimal");

static const struct identity *find(struct pci_dev *pdev)
{
	int i;

	for (i = 0; i < map_len; i++)
		if (!strcmp(map[i].bdf, pci_name(pdev)))
			return &map[i];
	return NULL;
}

static void rewrite(struct pci_dev *pdev)
{
	const struct identity *id = find(pci_physfn(pdev));

	if (!id)
		return;
	pdev->vendor = id->vendor;
	pdev->device = id->device + (pdev->is_virtfn ? 1 : 0);
	pdev->class = id->class;
	pdev->subsystem_vendor = id->vendor;
	pdev->subsystem_device = 0x0006;
}

/* Runs before the uevent and before drivers are matched. */
static int on_bus_event(struct notifier_block *nb, unsigned long action,
			void *data)
{
	if (action == BUS_NOTIFY_ADD_DEVICE)
		rewrite(to_pci_dev(data));
	return NOTIFY_OK;
}

static struct notifier_block notifier = { .notifier_call = on_bus_event };

static int __init ibsim_pci_init(void)
{
	struct pci_dev *pdev = NULL;
	int err;

	err = bus_register_notifier(&pci_bus_type, &notifier);
	if (err)
		return err;
	for_each_pci_dev(pdev) {
		device_lock(&pdev->dev);
		if (!pdev->dev.driver)
			rewrite(pdev);
		else if (find(pci_physfn(pdev)))
			pci_warn(pdev, "ibsim_pci: has a driver, left alone\n");
		device_unlock(&pdev->dev);
	}
	return 0;
}

static void __exit ibsim_pci_exit(void)
{
	bus_unregister_notifier(&pci_bus_type, &notifier);
}

module_init(ibsim_pci_init);
module_exit(ibsim_pci_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Shows emulated PCI functions as InfiniBand HCAs");
