// SPDX-License-Identifier: GPL-2.0-only
/*
 * Protection domains, memory regions, address handles and completion
 * queues.  For kernel users only: a user-space verbs context is refused,
 * because libibverbs would expect the real card's private interface.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include "ib.h"

static int alloc_ucontext(struct ib_ucontext *context, struct ib_udata *udata)
{
	return -EOPNOTSUPP;
}

static void dealloc_ucontext(struct ib_ucontext *context)
{
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	return mr ?: ERR_PTR(-ENOMEM);
}

static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length,
				 u64 virt_addr, int access,
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
				 struct ib_dmah *dmah,
#endif
				 struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	return 0;
}

static int create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init,
		     struct ib_udata *udata)
{
	to_sah(ah)->attr = *init->ah_attr;
	return 0;
}

static int query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	*attr = to_sah(ah)->attr;
	return 0;
}

static int destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 11, 0)
static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct uverbs_attr_bundle *attrs)
#else
static int create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		     struct ib_udata *udata)
#endif
{
	struct sim_cq *cq = to_scq(ibcq);

	if (!attr->cqe || attr->cqe > 65536)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	cq->size = attr->cqe;
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	ibcq->cqe = cq->size;
	return cq->ring ? 0 : -ENOMEM;
}

static int destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	kvfree(to_scq(ibcq)->ring);
	return 0;
}

void sim_cq_push(struct ib_cq *ibcq, const struct ib_wc *wc)
{
	struct sim_cq *cq = to_scq(ibcq);
	unsigned long flags;
	bool call;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->count == cq->size) {
		spin_unlock_irqrestore(&cq->lock, flags);
		pr_warn_ratelimited("%s_ib: completion queue overrun\n",
				    SIM_FAMILY);
		return;
	}
	cq->ring[(cq->head + cq->count++) % cq->size] = *wc;
	call = cq->armed;
	cq->armed = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (call && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

static int poll_cq(struct ib_cq *ibcq, int max, struct ib_wc *wc)
{
	struct sim_cq *cq = to_scq(ibcq);
	unsigned long flags;
	int n = 0;

	spin_lock_irqsave(&cq->lock, flags);
	while (n < max && cq->count) {
		wc[n++] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % cq->size;
		cq->count--;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

static int req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags want)
{
	struct sim_cq *cq = to_scq(ibcq);
	unsigned long flags;
	int missed;

	spin_lock_irqsave(&cq->lock, flags);
	cq->armed = true;
	missed = want & IB_CQ_REPORT_MISSED_EVENTS && cq->count;
	spin_unlock_irqrestore(&cq->lock, flags);
	return missed;
}

const struct ib_device_ops sim_verbs_ops = {
	.alloc_ucontext = alloc_ucontext,
	.dealloc_ucontext = dealloc_ucontext,
	.alloc_pd = alloc_pd,
	.dealloc_pd = dealloc_pd,
	.get_dma_mr = get_dma_mr,
	.reg_user_mr = reg_user_mr,
	.dereg_mr = dereg_mr,
	.create_ah = create_ah,
	.query_ah = query_ah,
	.destroy_ah = destroy_ah,
	.create_cq = create_cq,
	.destroy_cq = destroy_cq,
	.poll_cq = poll_cq,
	.req_notify_cq = req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_ucontext, sim_ucontext, ibuc),
	INIT_RDMA_OBJ_SIZE(ib_pd, sim_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_ah, sim_ah, ibah),
	INIT_RDMA_OBJ_SIZE(ib_cq, sim_cq, ibcq),
};
