// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a card does by itself: it powers up, beats its health counter, resets,
 * and looks whether anything was asked of it.
 *
 * Doorbells are memory here, so they are polled: quickly while something goes
 * on, else once a millisecond.  There is one thread for each processor,
 * since drivers busy-wait on one for tens of milliseconds.  The one that
 * found work looks quickly, the others stay slow.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include "card.h"

static unsigned int busy_us = 40, idle_us = 1000;
module_param(busy_us, uint, 0600);
MODULE_PARM_DESC(busy_us, "time between two looks while something goes on");
module_param(idle_us, uint, 0600);
MODULE_PARM_DESC(idle_us, "time between two looks while nothing does");

#define BUSY_FOR_NS (3 * NSEC_PER_MSEC)
#define BEAT_NS (100 * NSEC_PER_MSEC)
#define CLOCK_KHZ 156250

static struct task_struct *threads[NR_CPUS];
static unsigned long passes[NR_CPUS];
static u64 last_busy;

#ifdef CONFIG_PREEMPT_LAZY
/*
 * This kernel may preempt the driver between two of its writes.  After a grace
 * period of RCU tasks each task has left the processor by itself since.
 */
static unsigned long graces_begun, graces_ended;
static struct rcu_head grace;

static void grace_ended(struct rcu_head *head)
{
	smp_store_release(&graces_ended, graces_begun);
}

/* Of the one thread that runs firmware at a time. */
static bool grace_passed(unsigned long number)
{
	unsigned long ended = smp_load_acquire(&graces_ended);

	if (ended < number && ended == graces_begun) {
		graces_begun++;
		call_rcu_tasks(&grace, grace_ended);
	}
	return ended >= number;
}
#endif

/*
 * Where the kernel does not preempt itself (voluntary preemption), code that was
 * between two of its writes when a pass was noted is past both once our
 * thread has run twice on each processor.  With preempt=full this is no proof.
 */
void firmware_mark_pass(struct slot *s)
{
	unsigned int cpu;

#ifdef CONFIG_PREEMPT_LAZY
	s->grace = graces_begun + 1;
#endif

	for_each_online_cpu(cpu)
		if (cpu < ARRAY_SIZE(s->passes))
			s->passes[cpu] = READ_ONCE(passes[cpu]);
}

bool firmware_passed_twice(const struct slot *s)
{
	unsigned int cpu;

	for_each_online_cpu(cpu)
		if (cpu < ARRAY_SIZE(s->passes) &&
		    READ_ONCE(passes[cpu]) - s->passes[cpu] < 2)
			return false;
#ifdef CONFIG_PREEMPT_LAZY
	return grace_passed(s->grace);
#else
	return true;
#endif
}

/* All that a driver had made of the function. */
void firmware_drop_state(struct card_fn *fn)
{
	fn->up = false;
	fn->enabled = false;
	fn->cmdq = 0;
	command_forget(fn);
	objects_free(fn);
	bitmap_zero(fn->vector_pending, MSIX_VECTORS_MAX);
	fn->given.count = 0;
	memset(fn->this_probe, 0, MLX5_CMD_OP_MAX * sizeof(u32));
}

static void write_queue_register(struct card_fn *fn, u32 address, u8 nic_state)
{
	iowrite32be((address & ~0xfffU) | nic_state << 8 |
		    CMD_LOG_SLOTS << 4 | CMD_LOG_STRIDE,
		    &fn->iseg->cmdq_addr_l_sz);
}

static void power_up(struct card_fn *fn)
{
	char version[VALUE_LEN] = "20.35.1012";
	u32 major, minor, sub, i;

	memset_io(fn->bar, 0, BAR_MSIX_PBA + PAGE_SIZE);
	/* Vectors begin masked. */
	for (i = 0; i < fn->vector_count; i++)
		iowrite32(PCI_MSIX_ENTRY_CTRL_MASKBIT,
			  fn->bar + BAR_MSIX_TABLE + i * PCI_MSIX_ENTRY_SIZE +
			  PCI_MSIX_ENTRY_VECTOR_CTRL);
	knob_text(fn, "fw_ver", version);
	if (sscanf(version, "%u.%u.%u", &major, &minor, &sub) != 3)
		major = 20, minor = 35, sub = 1012;
	iowrite32be(minor << 16 | major, &fn->iseg->fw_rev);
	iowrite32be(5 << 16 | sub, &fn->iseg->cmdif_rev_fw_sub);
	iowrite32be(minor << 16 | major, &fn->iseg->health.fw_ver);
	write_queue_register(fn, 0, NIC_FULL);
	i = knob_number(fn, "cmd_timeout_ms", 0);
	iowrite32be(i, CMD_EXEC_TO(fn->iseg));
	iowrite32be(i ? 2000 : 0, CMD_Q_INIT_TO(fn->iseg));
	fn->power_on = now_ns();
	fn->next_beat = fn->power_on;
	fn->powered = true;
	/* In pre-initialisation until the next look says otherwise. */
	iowrite32be(1U << 31 | 1U << 30, &fn->iseg->initializing);
}

/* Function level reset, power on, or what a driver asked for. */
void firmware_reset(struct card_fn *fn)
{
	firmware_drop_state(fn);
	fn->powered = false;
	fn->reset_until = 0;
	if (bus_memory_on(fn))
		power_up(fn);
}

/* What the PF has told of a VF and given for it is lost with the firmware. */
static void forget_vf(struct card_fn *fn)
{
	if (!fn->is_vf)
		return;
	memset(&fn->vport, 0, sizeof(fn->vport));
	fn->lent.count = 0;
}

/* A reset of the firmware takes every function of the card with it. */
static void reset_card(struct card_fn *asked)
{
	u64 until = now_ns() + knob_number(asked, "reset_ms", 500) * NSEC_PER_MSEC;
	struct card_fn *fn;
	unsigned int p;
	int i;

	for (p = 0; p < card_pfs; p++) {
		if (card_pf[p]->card != asked->card)
			continue;
		for_each_fn_of(card_pf[p], fn, i) {
			forget_vf(fn);
			if (!fn->powered || fn->gone)
				continue;
			firmware_reset(fn);
			if (!fn->powered)
				continue;
			write_queue_register(fn, 0, NIC_SW_RESET);
			fn->reset_until = until;
			count(fn, C_reset);
		}
	}
}

static void beat(struct card_fn *fn, u64 now)
{
	u64 clock = div_u64(now, 1000) * CLOCK_KHZ;

	if (now < fn->next_beat)
		return;
	fn->next_beat = now + BEAT_NS;
	iowrite32be(ioread32be(&fn->iseg->health_counter) + 1,
		    &fn->iseg->health_counter);
	clock = div_u64(clock, 1000);
	iowrite32be(clock >> 32, &fn->iseg->internal_timer_h);
	iowrite32be(clock, &fn->iseg->internal_timer_l);
}

/* Says whether its firmware is up, which a driver may read before it enables bus mastering. */
static void show_ready(struct card_fn *fn, u64 now)
{
	u32 init = ioread32be(&fn->iseg->initializing);
	/* A VF is ready once its PF has enabled it and has given it pages. */
	bool cared_for = !fn->is_vf || fn->vport.starved ||
			 (fn->vport.enabled && fn->lent.count >= fn->vport.pages_wanted);
	bool ready = now >= fn->power_on + fn->k_fw_wait_ms * NSEC_PER_MSEC && cared_for;

	if (!fn->reset_until && ready != !(init >> 31))
		iowrite32be((init & ~(1U << 31)) | (u32)!ready << 31,
			    &fn->iseg->initializing);
}

/* Registers of the initialisation segment that the driver writes. */
static bool registers(struct card_fn *fn, u64 now)
{
	u32 low = ioread32be(&fn->iseg->cmdq_addr_l_sz);

	if (fn->reset_until) {
		if (now < fn->reset_until)
			return true;
		fn->reset_until = 0;
		write_queue_register(fn, 0, NIC_DISABLED);
		return true;
	}
	/* The driver's write leaves zeroes where the queue's size stood. */
	if (!(low & 0xff)) {
		u8 state = low >> 8 & 7;

		if (state == NIC_SW_RESET) {
			reset_card(fn);
			return true;
		}
		fn->cmdq = (u64)ioread32be(&fn->iseg->cmdq_addr_h) << 32 |
			   (low & ~0xfffU);
		if (state == NIC_DISABLED)
			firmware_drop_state(fn);
		else
			command_forget(fn);
		write_queue_register(fn, low, state);
		return true;
	}
	return false;
}

/*
 * The queue's size is the card's to say, also after a driver wrote an address
 * that a silent card never took: the next driver reads it first of all.
 */
static void keep_queue_size(struct card_fn *fn)
{
	u32 low = ioread32be(&fn->iseg->cmdq_addr_l_sz);

	if (!(low & 0xff))
		write_queue_register(fn, 0, low >> 8 & 7);
}

static void show_syndrome(struct card_fn *fn)
{
	if (ioread8(&fn->iseg->health.synd) == fn->k_syndrome)
		return;
	iowrite8(fn->k_syndrome, &fn->iseg->health.synd);
	/* "Request for reset": the driver is to recover the card. */
	iowrite8(fn->k_syndrome && knob_number(fn, "rfr", 1) ? 1 << 7 : 0,
		 RFR_SEVERITY(fn->iseg));
}

static void all_ones(struct card_fn *fn)
{
	firmware_drop_state(fn);
	if (fn->powered)
		memset_io(fn->bar, 0xff, BAR_MSIX_PBA + PAGE_SIZE);
}

static bool fn_pass(struct card_fn *fn, u64 now)
{
	u8 told = fn->k_syndrome;
	bool busy = false, gone;

	if (fn->is_vf) {
		bool on = bus_vfs_enabled(fn->pf);

		if (on != fn->vfs_on) {
			fn->vfs_on = on;
			firmware_reset(fn);
		}
		if (!on)
			return false;
	}
	knobs_refresh(fn);
	gone = fn->k_gone || fn->pf->k_gone;
	if (gone != fn->gone) {
		WRITE_ONCE(fn->gone, gone);
		/* It comes back as after power-on, and it takes its VFs with it. */
		if (fn->pf->k_gone)
			forget_vf(fn);
		if (gone)
			all_ones(fn);
		else
			firmware_reset(fn);
	}
	if (fn->gone)
		return false;
	if (READ_ONCE(fn->flr)) {
		count(fn, C_reset);
		firmware_reset(fn);
		bus_flr_done(fn);
	}
	if (!fn->powered)
		return false;
	/* Firmware that answers nothing does not beat either. */
	if (fn->k_silent)
		return false;
	if (told != fn->k_syndrome)
		show_syndrome(fn);
	beat(fn, now);
	show_ready(fn, now);
	if (!bus_master_on(fn)) {
		keep_queue_size(fn);
		return busy;
	}
	busy |= registers(fn, now);
	if (fn->reset_until)
		return busy;
	busy |= command_pass(fn);
	busy |= wire_pass(fn);
	busy |= cq_pass(fn);
	event_vectors(fn);
	return busy;
}

static bool pass(void)
{
	u64 now = now_ns();
	struct card_fn *fn;
	bool busy = false;
	unsigned int p;
	int i;

	for (p = 0; p < card_pfs; p++) {
		for_each_fn_of(card_pf[p], fn, i)
			busy |= fn_pass(fn, now);
		port_pass(card_pf[p]);
	}
	if (busy)
		last_busy = now;
	return now - last_busy < BUSY_FOR_NS;
}

static int run(void *data)
{
	static unsigned int worker;	/* the one that looks often */
	unsigned int cpu = (unsigned long)data;

	while (!kthread_should_stop()) {
		bool busy = false;
		unsigned int us;

		if (spin_trylock(&card_lock)) {
			u64 before = last_busy;

			busy = pass();
			if (last_busy != before)
				worker = cpu;
			busy &= worker == cpu;
			spin_unlock(&card_lock);
		}
		WRITE_ONCE(passes[cpu], passes[cpu] + 1);
		us = busy ? busy_us : idle_us;
		usleep_range(us, us + us / 4);
	}
	return 0;
}

int firmware_start(void)
{
	unsigned int cpu;

	for_each_online_cpu(cpu) {
		struct task_struct *t = kthread_create_on_node(run,
				(void *)(unsigned long)cpu, cpu_to_node(cpu),
				CARD_NAME "/%u", cpu);

		if (IS_ERR(t))
			return PTR_ERR(t);
		kthread_bind(t, cpu);
		threads[cpu] = t;
		wake_up_process(t);
	}
	return 0;
}

void firmware_stop(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (threads[cpu])
			kthread_stop(threads[cpu]);
		threads[cpu] = NULL;
	}
#ifdef CONFIG_PREEMPT_LAZY
	rcu_barrier_tasks();
#endif
}
