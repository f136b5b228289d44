// SPDX-License-Identifier: GPL-2.0-only
/*
 * The switch: takes datagrams off the senders' hands and brings them to the
 * port that owns the LID, to the members of a multicast group, or to the SM.
 * One worker delivers, so that senders may hold any lock.
 */
#include <linux/bottom_half.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "ib.h"

#define MAX_QUEUED 4096

struct member {
	struct list_head node;
	union ib_gid gid;
	struct sim_qp *qp;
};

static LIST_HEAD(devices);
static LIST_HEAD(qps);
static LIST_HEAD(members);
static DEFINE_SPINLOCK(fabric_lock);	/* the three lists and all delivery */

static LIST_HEAD(queue);
static unsigned int queued;
static DEFINE_SPINLOCK(queue_lock);
static struct workqueue_struct *wq;
static atomic_t last_lid = ATOMIC_INIT(SIM_SM_LID);

/* LIDs are never used twice; 48,000 bindings outlast any test. */
u16 sim_switch_lid(void)
{
	return atomic_inc_return(&last_lid) % (SIM_MCAST_LID - 1);
}

void sim_switch_add(struct sim_ib *ib)
{
	spin_lock_irq(&fabric_lock);
	list_add_tail(&ib->node, &devices);
	spin_unlock_irq(&fabric_lock);
}

void sim_switch_del(struct sim_ib *ib)
{
	spin_lock_irq(&fabric_lock);
	list_del(&ib->node);
	spin_unlock_irq(&fabric_lock);
}

void sim_switch_add_qp(struct sim_qp *qp)
{
	spin_lock_irq(&fabric_lock);
	list_add_tail(&qp->node, &qps);
	spin_unlock_irq(&fabric_lock);
}

void sim_switch_del_qp(struct sim_qp *qp)
{
	struct member *m, *next;

	spin_lock_irq(&fabric_lock);
	list_del(&qp->node);
	list_for_each_entry_safe(m, next, &members, node) {
		if (m->qp == qp) {
			list_del(&m->node);
			kfree(m);
		}
	}
	spin_unlock_irq(&fabric_lock);
}

int sim_switch_attach(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	struct member *m = kzalloc(sizeof(*m), GFP_KERNEL);

	if (!m)
		return -ENOMEM;
	m->gid = *gid;
	m->qp = to_sqp(qp);
	spin_lock_irq(&fabric_lock);
	list_add_tail(&m->node, &members);
	spin_unlock_irq(&fabric_lock);
	return 0;
}

int sim_switch_detach(struct ib_qp *qp, union ib_gid *gid, u16 lid)
{
	struct member *m, *found = NULL;

	spin_lock_irq(&fabric_lock);
	list_for_each_entry(m, &members, node) {
		if (m->qp == to_sqp(qp) && !memcmp(&m->gid, gid, 16)) {
			list_del(&m->node);
			found = m;
			break;
		}
	}
	spin_unlock_irq(&fabric_lock);
	kfree(found);
	return found ? 0 : -EINVAL;
}

/* Who has this GID on an Active port?  The SM's path look-up. */
bool sim_switch_gid_lid(const union ib_gid *gid, u16 *lid)
{
	u64 guid = be64_to_cpu(gid->global.interface_id);
	struct sim_ib *ib;
	unsigned int i;
	bool found = false;

	spin_lock_irq(&fabric_lock);
	list_for_each_entry(ib, &devices, node) {
		for (i = 0; i < ib->func->nports && !found; i++) {
			if (ib->func->port_guid[i] == guid &&
			    sim_port_up(&ib->port[i])) {
				*lid = ib->port[i].lid;
				found = true;
			}
		}
	}
	spin_unlock_irq(&fabric_lock);
	return found;
}

static bool pkeys_meet(struct sim_qp *qp, u16 pkey)
{
	u16 own = sim_port_pkey(qp->pkey_index);

	if (qp->ibqp.qp_num <= 1)
		return true;
	return (own & 0x7fff) == (pkey & 0x7fff) && ((own | pkey) & 0x8000);
}

static void hand_over(struct sim_qp *qp, struct sim_packet *p)
{
	struct sim_func *f = qp->port->ib->func;

	if (!sim_port_up(qp->port) || !pkeys_meet(qp, p->pkey))
		return;
	if (qp->ibqp.qp_num > 1 && qp->qkey != p->qkey)
		return;
	sim_count(f, sim_qp_receive(qp, p) ? SIM_C_rx_packet :
					     SIM_C_rx_no_buffer);
}

static void deliver(struct sim_packet *p)
{
	struct sim_qp *qp;
	struct member *m;

	spin_lock_irq(&fabric_lock);
	if (p->dlid >= SIM_MCAST_LID) {
		/* The sender does not hear itself. */
		list_for_each_entry(m, &members, node)
			if (p->has_grh &&
			    !memcmp(&m->gid, &p->grh.dgid, 16) &&
			    m->qp->ibqp.qp_num != p->sqpn)
				hand_over(m->qp, p);
	} else {
		list_for_each_entry(qp, &qps, node)
			if (qp->port->lid == p->dlid &&
			    qp->ibqp.qp_num == p->dqpn)
				hand_over(qp, p);
	}
	spin_unlock_irq(&fabric_lock);
}

static void work_off(struct work_struct *work)
{
	struct sim_packet *p;

	for (;;) {
		spin_lock_irq(&queue_lock);
		p = list_first_entry_or_null(&queue, struct sim_packet, node);
		if (p) {
			list_del(&p->node);
			queued--;
		}
		spin_unlock_irq(&queue_lock);
		if (!p)
			break;
		/* Receivers raise softirqs; let them run after each packet. */
		local_bh_disable();
		if (p->dlid == SIM_SM_LID)
			sim_sa_request(p);
		else
			deliver(p);
		local_bh_enable();
		kfree(p);
	}
}
static DECLARE_WORK(switch_work, work_off);

/* Takes over the packet; drops it, as a datagram may be, when flooded. */
void sim_switch_send(struct sim_packet *p)
{
	unsigned long flags;

	spin_lock_irqsave(&queue_lock, flags);
	if (queued < MAX_QUEUED) {
		list_add_tail(&p->node, &queue);
		queued++;
		p = NULL;
	}
	spin_unlock_irqrestore(&queue_lock, flags);
	kfree(p);
	queue_work(wq, &switch_work);
}

int sim_switch_init(void)
{
	wq = alloc_ordered_workqueue("ibsim_switch", 0);
	return wq ? 0 : -ENOMEM;
}

void sim_switch_exit(void)
{
	destroy_workqueue(wq);
	sim_sa_forget();
}
