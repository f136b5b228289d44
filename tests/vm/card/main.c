// SPDX-License-Identifier: GPL-2.0-only
#include <linux/module.h>
#include "card.h"

DEFINE_SPINLOCK(card_lock);
struct card_fn *card_pf[CARD_MAX_PFS];
unsigned int card_pfs;

static char *pf = "1.0:8";
module_param(pf, charp, 0400);
MODULE_PARM_DESC(pf, "CARD.FUNCTION:VFS[:eth],...");

static int __init card_init(void)
{
	int err = bus_parse(pf);

	if (!err)
		err = iommu_start();
	if (!err)
		err = bus_start();
	if (err) {
		bus_stop();
		iommu_stop();
	}
	return err;
}

static void __exit card_exit(void)
{
	bus_stop();
	iommu_stop();
	sa_forget();
	knobs_free();
}

module_init(card_init);
module_exit(card_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("ConnectX cards in software, for the kernel's own mlx5 drivers");
