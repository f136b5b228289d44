// SPDX-License-Identifier: GPL-2.0-only
/*
 * Event queues, completion queues, interrupts.
 *
 * An interrupt is what the driver's MSI-X table says: that vector, sent to
 * that processor.  Event queues are not armed here: an interrupt goes out for
 * every entry, and one too many does no harm.  Completion queues are, by the
 * arm word in the driver's memory; its sequence number changes with each event.
 */
#include <asm/apic.h>
#include <linux/mlx5/cq.h>
#include "card.h"

static int target_cpu(u32 address)
{
	u32 destination = address >> 12 & 0xff;
	int cpu;

	if (address & 4) {		/* logical: a bit for each processor */
		if (!destination)
			return -1;
		cpu = __ffs(destination);
		return cpu < nr_cpu_ids && cpu_online(cpu) ? cpu : -1;
	}
	for_each_online_cpu(cpu)
		if (cpu_physical_id(cpu) == destination)
			return cpu;
	return -1;
}

/* Sends what is pending and not masked. */
void event_vectors(struct card_fn *fn)
{
	unsigned int v;

	if (bitmap_empty(fn->vector_pending, MSIX_VECTORS_MAX) || !bus_msix_on(fn))
		return;
	for_each_set_bit(v, fn->vector_pending, MSIX_VECTORS_MAX) {
		void __iomem *e = fn->bar + BAR_MSIX_TABLE + v * PCI_MSIX_ENTRY_SIZE;
		int cpu;

		if (ioread32(e + PCI_MSIX_ENTRY_VECTOR_CTRL) & PCI_MSIX_ENTRY_CTRL_MASKBIT)
			continue;
		clear_bit(v, fn->vector_pending);
		cpu = target_cpu(ioread32(e + PCI_MSIX_ENTRY_LOWER_ADDR));
		if (cpu < 0)
			continue;
		count(fn, C_interrupt);
		apic->send_IPI(cpu, ioread32(e + PCI_MSIX_ENTRY_DATA) & 0xff);
	}
}

void event_post(struct card_fn *fn, struct card_eq *eq, u8 type, u8 sub_type,
		const void *data, size_t len)
{
	u32 size = 1U << eq->log_size;
	struct mlx5_eqe *e = object_at(&eq->obj,
				       (eq->producer & (size - 1)) * sizeof(*e));

	if (!e)
		return;
	memset(e->rsvd2, 0, sizeof(e->rsvd2));
	memset(&e->data, 0, sizeof(e->data));
	e->type = type;
	e->sub_type = sub_type;
	memcpy(&e->data, data, min(len, sizeof(e->data)));
	smp_wmb();
	WRITE_ONCE(e->owner, eq->producer >> eq->log_size & 1);
	eq->producer++;
	count(fn, C_event);
	set_bit(eq->vector, fn->vector_pending);
	event_vectors(fn);
}

/* To the queue that was made for events of that type. */
bool event_async(struct card_fn *fn, u8 type, u8 sub_type, const void *data,
		 size_t len)
{
	struct object *o;

	list_for_each_entry(o, &fn->objects, node) {
		struct card_eq *eq = (struct card_eq *)o;

		if (o->type == OBJ_EQ && eq->events & 1ULL << type) {
			event_post(fn, eq, type, sub_type, data, len);
			return true;
		}
	}
	return false;
}

/* Where the next completion goes, cleared; the last 64 bytes of an entry. */
void *cq_next_entry(struct card_cq *cq)
{
	u32 at = cq->producer & ((1U << cq->log_size) - 1);
	void *e = object_at(&cq->obj, (size_t)at * cq->entry_size);

	if (!e)
		return NULL;
	e += cq->entry_size - 64;
	/* The owner is changed last. */
	memset(e, 0, 63);
	return e;
}

/*
 * The first arm word of a driver.  Newer ones write 2 << 28 when they make a
 * queue and are then told apart from one that asks.  To those before (5.10) 0
 * is both: nothing asked, and the first question.  A driver that asks nothing
 * has no handler and reads by itself, so there, who has not read for so long
 * has asked.
 */
#define FIRST_ARM_MS 200

static bool armed(struct card_cq *cq, __be32 arm)
{
	if (arm || cq->told)
		return arm != cq->last_arm;
	return now_ns() - cq->first_entry > FIRST_ARM_MS * NSEC_PER_MSEC;
}

static bool tell(struct card_cq *cq)
{
	struct card_fn *fn = cq->obj.fn;
	__be32 arm = READ_ONCE(cq->record[1]);
	struct card_eq *eq;
	struct mlx5_eqe_comp comp = { .cqn = cpu_to_be32(cq->obj.number) };

	if (!cq->first_entry)
		cq->first_entry = now_ns();
	if (!armed(cq, arm))
		return false;
	/* Armed for entries that the driver has seen already. */
	if (((be32_to_cpu(arm) ^ cq->producer) & 0xffffff) == 0)
		return false;
	cq->last_arm = arm;
	cq->told = true;
	list_del_init(&cq->waiting);
	eq = (struct card_eq *)object_find(fn, OBJ_EQ, cq->eqn);
	if (eq)
		event_post(fn, eq, MLX5_EVENT_TYPE_COMP, 0, &comp, sizeof(comp));
	return true;
}

void cq_publish(struct card_cq *cq, void *entry, u8 opcode)
{
	struct mlx5_cqe64 *e = entry;

	smp_wmb();
	WRITE_ONCE(e->op_own, opcode << 4 | (cq->producer >> cq->log_size & 1));
	cq->producer++;
	if (!tell(cq) && list_empty(&cq->waiting))
		list_add_tail(&cq->waiting, &cq->obj.fn->cqs_waiting);
}

/* Queues with entries that were armed only afterwards. */
bool cq_pass(struct card_fn *fn)
{
	struct card_cq *cq, *next;
	bool busy = false;

	list_for_each_entry_safe(cq, next, &fn->cqs_waiting, waiting) {
		/* Read meanwhile by a driver that polls. */
		if (((be32_to_cpu(READ_ONCE(cq->record[0])) ^ cq->producer) & 0xffffff) == 0)
			list_del_init(&cq->waiting);
		else
			busy |= tell(cq);
	}
	return busy;
}
