// SPDX-License-Identifier: GPL-2.0-only
/*
 * The command queue: 32 entries in the driver's memory, a doorbell with a bit
 * for each, messages of 16 bytes inline and the rest in chained mailboxes.
 *
 * The doorbell is memory here and a second ring may hide the first.  An entry
 * whose owner bit is set without a ring therefore counts as rung once the
 * driver is sure to be past it (see firmware_passed_twice).  To go by the
 * owner bit alone would be wrong: the driver sets it also for commands that
 * it then does not send.  And the queue's memory is looked at only while it
 * is the driver's: from ENABLE_HCA to DISABLE_HCA, and while the function may
 * master the bus.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include "card.h"

#define MESSAGE_MAX (512 * 1024)
#define DELIVERY_FIRMWARE 0x6
#define DELIVERY_IN_LENGTH 0x7
#define OWNED_BY_CARD 1

static bool trace;
module_param(trace, bool, 0600);
MODULE_PARM_DESC(trace, "say every command to the kernel log");

static struct mlx5_cmd_layout *entry(struct card_fn *fn, unsigned int i)
{
	return dma_virt(fn->cmdq + (i << CMD_LOG_STRIDE));
}

void command_forget(struct card_fn *fn)
{
	memset(fn->slot, 0, sizeof(fn->slot));
}

/* Between a message and its mailboxes; the first 16 bytes are in the entry. */
static bool copy_message(void *inl, u64 mailbox, void *buffer, size_t len, bool out)
{
	size_t part = min_t(size_t, len, 16);

	if (out)
		memcpy(inl, buffer, part);
	else
		memcpy(buffer, inl, part);
	for (buffer += part, len -= part; len; buffer += part, len -= part) {
		struct mlx5_cmd_prot_block *block = dma_virt(mailbox);

		if (!block)
			return false;
		part = min_t(size_t, len, sizeof(block->data));
		if (out)
			memcpy(block->data, buffer, part);
		else
			memcpy(buffer, block->data, part);
		mailbox = be64_to_cpu(block->next);
	}
	return true;
}

static void finish(struct card_fn *fn, unsigned int i, u8 delivery)
{
	struct mlx5_cmd_layout *lay = entry(fn, i);

	/* The answer must be there before the driver owns the entry. */
	smp_wmb();
	WRITE_ONCE(lay->status_own, delivery << 1);
	memset(&fn->slot[i], 0, sizeof(fn->slot[i]));
}

static struct card_eq *command_eq(struct card_fn *fn)
{
	struct object *o;

	list_for_each_entry(o, &fn->objects, node) {
		struct card_eq *eq = (struct card_eq *)o;

		if (o->type == OBJ_EQ && eq->events & 1ULL << MLX5_EVENT_TYPE_CMD)
			return eq;
	}
	return NULL;
}

/* Executed, or given back with the error of delivery @delivery. */
static void run(struct card_fn *fn, unsigned int i, u8 delivery)
{
	struct mlx5_cmd_layout *lay = entry(fn, i);
	size_t in_len = be32_to_cpu(lay->inlen), out_len = be32_to_cpu(lay->outlen);
	u8 *in = NULL, *out = NULL, status;
	struct card_eq *before = command_eq(fn), *after;
	u16 opcode = 0;

	if (delivery)
		goto out;
	if (in_len < 8 || in_len > MESSAGE_MAX || out_len < 8 ||
	    out_len > MESSAGE_MAX) {
		delivery = DELIVERY_IN_LENGTH;
		goto out;
	}
	/* What is in the entry itself is always there. */
	in = kzalloc(max_t(size_t, in_len, 16), GFP_ATOMIC | __GFP_NOWARN);
	out = kzalloc(max_t(size_t, out_len, 16), GFP_ATOMIC | __GFP_NOWARN);
	if (!in || !out ||
	    !copy_message(lay->in, be64_to_cpu(lay->in_ptr), in, in_len, false)) {
		delivery = DELIVERY_IN_LENGTH;
		goto out;
	}
	opcode = be16_to_cpu(*(__be16 *)in);
	status = execute(fn, opcode, in, in_len, out, out_len);
	out[0] = status;
	count(fn, C_command);
	if (status)
		count(fn, C_command_failed);
	if (opcode < MLX5_CMD_OP_MAX)
		fn->by_opcode[opcode]++;
	if (trace)
		pr_info(CARD_NAME ": %s %s(0x%x) mod 0x%x in %zu out %zu: 0x%x\n",
			fn->name, opcode_name(opcode), opcode,
			be16_to_cpu(*(__be16 *)(in + 6)), in_len, out_len, status);
	/* A reset or power loss took the queue away meanwhile. */
	if (!fn->cmdq)
		goto free;
	copy_message(lay->out, be64_to_cpu(lay->out_ptr), out, out_len, true);
out:
	after = command_eq(fn);
	finish(fn, i, delivery);
	/*
	 * Commands are waited for by polling until their event queue is there;
	 * the one that makes it and the one that ends it are polled for.
	 */
	if (before && before == after) {
		__be32 vector = cpu_to_be32(1U << i);

		event_post(fn, before, MLX5_EVENT_TYPE_CMD, 0, &vector,
			   sizeof(vector));
	}
free:
	kfree(in);
	kfree(out);
}

/* When a command that is rung now will be answered; false: never. */
static bool plan_answer(struct card_fn *fn, unsigned int i, u64 now)
{
	struct mlx5_cmd_layout *lay = entry(fn, i);
	u16 opcode = be32_to_cpu(lay->in[0]) >> 16;
	char knob[64], value[VALUE_LEN];
	u64 ms;

	fn->slot[i].due = now;
	snprintf(knob, sizeof(knob), "slow.%s", opcode_name(opcode));
	ms = knob_number(fn, knob, 0);
	if (!ms)
		ms = knob_number(fn, "slow", 0);
	fn->slot[i].due += ms * NSEC_PER_MSEC;
	/*
	 * Part of a function's initialisation is done for one function of the
	 * card at a time.
	 */
	if (opcode == MLX5_CMD_OP_INIT_HCA) {
		static u64 free_at[CARD_MAX_PFS + 1];
		u64 serial = knob_number(fn, "serial_init_ms", 0) * NSEC_PER_MSEC;

		if (serial) {
			u64 start = max(free_at[fn->card], fn->slot[i].due);

			free_at[fn->card] = start + serial;
			fn->slot[i].due = start + serial;
		}
	}
	snprintf(knob, sizeof(knob), "drop.%s", opcode_name(opcode));
	if (knob_text(fn, knob, value) && !strcmp(value, "1")) {
		count(fn, C_command_dropped);
		return false;
	}
	return true;
}

/* A command that was not answered while its knob said so, and now is. */
static bool is_let_go(struct card_fn *fn, unsigned int i)
{
	char knob[64], value[VALUE_LEN];
	u16 opcode = be32_to_cpu(entry(fn, i)->in[0]) >> 16;

	snprintf(knob, sizeof(knob), "drop.%s", opcode_name(opcode));
	return knob_text(fn, knob, value) && !strcmp(value, "late");
}

bool command_pass(struct card_fn *fn)
{
	u64 now = now_ns();
	bool busy = false, was_enabled;
	unsigned int i;
	u32 rung;

	if (!fn->cmdq)
		return false;
	/* A plain read and a write of zero could lose a ring between them. */
	rung = be32_to_cpu((__force __be32)xchg((__force u32 *)&fn->iseg->cmd_dbell, 0));
	for (i = 0; i < CMD_SLOTS; i++) {
		struct slot *s = &fn->slot[i];
		struct mlx5_cmd_layout *lay = entry(fn, i);
		bool owned = READ_ONCE(lay->status_own) & OWNED_BY_CARD;

		if (s->rung && (!owned || s->token != lay->token)) {
			/* Given up by the driver and used anew. */
			memset(s, 0, sizeof(*s));
		}
		if (!owned) {
			s->seen = false;
			continue;
		}
		if (!s->rung) {
			bool ring = rung & 1U << i;

			/* Before ENABLE_HCA there is one command at a time. */
			if (!ring && fn->enabled && s->seen && s->token == lay->token &&
			    firmware_passed_twice(s)) {
				ring = true;
				count(fn, C_hidden_doorbell);
			}
			if (!ring) {
				if (!s->seen || s->token != lay->token) {
					s->seen = true;
					s->token = lay->token;
					firmware_mark_pass(s);
				}
				busy = true;
				continue;
			}
			s->rung = true;
			s->token = lay->token;
			s->dropped = !plan_answer(fn, i, now);
		}
		if (s->dropped) {
			if (is_let_go(fn, i))
				run(fn, i, DELIVERY_FIRMWARE);
			continue;
		}
		if (now < s->due)
			continue;
		busy = true;
		was_enabled = fn->enabled;
		run(fn, i, 0);
		if (was_enabled && !fn->enabled)
			fn->cmdq = 0;
		if (!fn->cmdq)
			break;
	}
	return busy;
}
