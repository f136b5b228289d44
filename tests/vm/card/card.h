/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A ConnectX card in software, for the distribution's own drivers: PCI
 * functions, firmware, ports, switch and subnet manager are played here;
 * everything that drives them is the kernel's.
 *
 * One lock guards everything but the configuration space.  It is taken by the
 * card's threads, which do all that hardware would do by itself, and by the
 * files under debugfs; never by an interrupt handler.
 */
#ifndef IBCARD_CARD_H
#define IBCARD_CARD_H

#include <linux/atomic.h>
#include <linux/bitmap.h>
#include <linux/dcache.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/mlx5/device.h>
#include <linux/pci.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

/*
 * Headers of 5.10 do not name all of what 6.1's do; the places are the same.
 * Where a name says where its neighbour is, no version has to be asked for.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 16, 0)
#define c_eqn_or_apu_element c_eqn
#define MLX5_IFC_FLOW_DESTINATION_TYPE_TIR MLX5_FLOW_DESTINATION_TYPE_TIR
#define MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE MLX5_FLOW_DESTINATION_TYPE_FLOW_TABLE
#endif
#define CMD_EXEC_TO(iseg) (&(iseg)->internal_timer_h - 2)
#define CMD_Q_INIT_TO(iseg) (&(iseg)->internal_timer_h - 1)
#define RFR_SEVERITY(iseg) (&(iseg)->health.irisc_index - 4)

#define CARD_NAME "ibcard"
#define CARD_MAX_PFS 10
#define CARD_MAX_VFS 127
#define CARD_CONFIG_SIZE 4096
#define CARD_DOMAIN 1

/* What lies where in BAR 0. */
#define BAR_MSIX_TABLE 0x4000
#define BAR_MSIX_PBA 0x5000
#define BAR_FIRST_UAR 8			/* page number */
#define BAR_SIZE_PF 0x100000
#define BAR_SIZE_VF 0x20000
#define MSIX_VECTORS_MAX 32

#define CMD_LOG_SLOTS 5
#define CMD_LOG_STRIDE 6
#define CMD_SLOTS (1 << CMD_LOG_SLOTS)

#define SM_LID 1
#define FIRST_LID 2
#define PKEY_MAX 128
#define GSI_QKEY 0x80010000
#define RQT_MAX 256

#define NIC_FULL 0
#define NIC_DISABLED 1
#define NIC_SW_RESET 7

enum card_policy { POLICY_DOWN, POLICY_UP, POLICY_FOLLOW };
enum card_link { LINK_DOWN, LINK_INIT, LINK_ACTIVE };

/* Read-only accounting, one set per function. */
#define CARD_COUNTERS(X)	\
	X(command)		\
	X(command_failed)	\
	X(command_dropped)	\
	X(probe)		\
	X(remove)		\
	X(init)			\
	X(teardown)		\
	X(reset)		\
	X(set_node_guid)	\
	X(set_port_guid)	\
	X(set_policy)		\
	X(query_vport)		\
	X(event)		\
	X(interrupt)		\
	X(port_event)		\
	X(page_request)		\
	X(page_refused)		\
	X(sa_request)		\
	X(smp)			\
	X(tx_packet)		\
	X(rx_packet)		\
	X(tx_enhanced)		\
	X(rx_enhanced)		\
	X(rx_no_buffer)		\
	X(rx_refused)		\
	X(hidden_doorbell)	\
	X(vsec)			\
	X(nv_write)

#define CARD_COUNTER_ENUM(name) C_##name,
enum card_counter { CARD_COUNTERS(CARD_COUNTER_ENUM) C_NR };

enum object_type {
	OBJ_EQ, OBJ_CQ, OBJ_QP, OBJ_UAR, OBJ_PD, OBJ_MKEY, OBJ_XRCD, OBJ_SRQ,
	OBJ_RMP, OBJ_Q_COUNTER, OBJ_TRANSPORT_DOMAIN, OBJ_RQ, OBJ_SQ, OBJ_TIS,
	OBJ_TIR, OBJ_RQT, OBJ_FLOW_TABLE, OBJ_TYPES
};

struct card_fn;

/* Something that a driver created; the bigger ones begin with it. */
struct object {
	struct list_head node;		/* of its function */
	struct card_fn *fn;
	enum object_type type;
	u32 number;
	/* The driver's memory, in pages of 1 << page_shift. */
	unsigned int page_shift;
	unsigned int pages;
	u64 *page;
};

struct card_eq {
	struct object obj;
	unsigned int log_size;
	u32 producer;
	unsigned int vector;
	u64 events;
};

struct card_cq {
	struct object obj;
	struct list_head waiting;	/* entries that nobody was told of */
	unsigned int log_size;
	unsigned int entry_size;
	u32 producer;
	u32 eqn;
	__be32 *record;			/* consumer index, arm word */
	__be32 last_arm;
	bool told;			/* of an entry, ever */
	u64 first_entry;		/* ns; 0: none yet */
};

/* A queue pair; also a receive or send queue by itself, which is half of one. */
struct card_qp {
	struct object obj;
	struct list_head groups;
	unsigned int state;
	unsigned int service;
	unsigned int log_rq;
	unsigned int rq_shift;
	bool has_rq;
	unsigned int log_sq;
	bool has_sq;
	size_t sq_offset;
	__be32 *record;			/* receive counter, send counter */
	u16 rq_done;
	u16 sq_done;
	u32 send_cq, recv_cq;
	u32 qkey;
	bool sends_as_gsi;
	bool no_own_multicast;
	bool underlay;			/* has no queues: enhanced IPoIB's */
	u32 root_table;			/* of an underlay QP */
	u32 tis;			/* of a send queue */
	u8 context[MLX5_ST_SZ_BYTES(qpc)];
};

/* Joins send queues to a QP. */
struct card_tis {
	struct object obj;
	u32 qpn;
};

/* Leads to a receive queue, by itself or by a table. */
struct card_tir {
	struct object obj;
	u8 context[MLX5_ST_SZ_BYTES(tirc)];
};

struct card_rqt {
	struct object obj;
	u32 size;
	u32 rqn[RQT_MAX];
};

struct card_flow_table {
	struct object obj;
	struct list_head groups, entries;
	u32 last_group;
	u32 miss;			/* the table that comes next, or 0 */
};

struct mcast_member {
	struct list_head node;		/* of the QP */
	struct list_head all;
	struct card_qp *qp;
	union ib_gid gid;
};

/* A command that was rung and is not answered yet. */
struct slot {
	bool rung;
	bool seen;			/* owner bit without a ring */
	bool dropped;
	u8 token;
	u64 due;			/* ns */
	unsigned long passes[NR_CPUS > 64 ? 64 : NR_CPUS];
	unsigned long grace;		/* that has to have passed: PREEMPT_LAZY */
};

/* A virtual port: of a PF or of a VF; the firmware's truth. */
struct vport {
	u64 node_guid;
	u64 port_guid;
	enum card_policy policy;
	bool enabled;
	u32 cap_mask;
	enum card_link shown;		/* what the driver was last told */
	u16 shown_lid;
	/* A GUID or policy that takes effect with the next probe. */
	u64 held_node_guid, held_port_guid;
	unsigned int pages_wanted;	/* from its PF */
	bool starved;			/* the PF did not give them */
};

/* A port as a subnet manager sees it. */
struct sma_port {
	u8 info[64];			/* PortInfo */
	u8 state;			/* IB_PORT_INIT, ARMED, ACTIVE; with a link */
};

struct fw_pages {
	u64 *page;
	unsigned int count, room;
};

/* Registers of the vendor-specific capability, from its beginning. */
#define VSEC_CONTROL 0x04
#define VSEC_COUNTER 0x08
#define VSEC_SEMAPHORE 0x0c
#define VSEC_ADDRESS 0x10
#define VSEC_DATA 0x14
#define VSEC_SIZE 0x18

/* What a PF shows by it. */
struct nv_gateway {
	u16 space;
	u32 counter, semaphore, address, data;
	u32 icmd_ctrl;
	u64 due;			/* ns: of a command */
	u32 mailbox[256];
};

struct card_fn {
	char name[16];
	unsigned int card;		/* which root bus */
	u8 devfn;
	bool is_vf;
	int vf;				/* of its PF */
	struct card_fn *pf;		/* itself for a PF */
	struct card_fn **vfs;
	unsigned int total_vfs;
	unsigned int vector_count;
	bool eth;

	u8 *config;
	u8 *writable;			/* which bits the driver may change */
	unsigned int cap_exp, cap_msix, cap_vpd, cap_sriov;
	bool flr;			/* asked for, not done yet */
	bool vfs_on;
	u8 vpd[256];
	size_t vpd_len;			/* 0: no such capability */
	bool vpd_asked;
	u64 vpd_due;			/* ns */
	struct nv_gateway gateway;

	void __iomem *bar;
	struct mlx5_init_seg __iomem *iseg;
	bool powered;
	bool gone;
	bool silent;
	u64 power_on;			/* ns */
	u64 next_beat;
	u64 reset_until;
	u64 cmdq;			/* DMA address, 0: none */
	struct slot slot[CMD_SLOTS];
	DECLARE_BITMAP(vector_pending, MSIX_VECTORS_MAX);
	bool enabled;			/* between ENABLE_HCA and DISABLE_HCA */
	bool up;			/* between INIT_HCA and TEARDOWN_HCA */
	bool stale;			/* goes on with the GUIDs of an earlier probe */

	struct list_head objects;
	unsigned int left[OBJ_TYPES];	/* not destroyed at the last TEARDOWN_HCA */
	struct list_head cqs_waiting;
	struct xarray lookup[OBJ_TYPES];
	u32 next_number[OBJ_TYPES];
	struct card_qp *qp0, *qp1;

	struct vport vport;
	u64 port_since;			/* when the port began to come up */
	enum card_link port_state;	/* of a PF: the physical port's */
	u16 lid;
	u16 sm_lid;
	struct sma_port sma;		/* of a PF: what a subnet manager has set */
	u16 sm_pkey[PKEY_MAX];
	char node_desc[64];
	struct fw_pages given;		/* by this function's driver */
	struct fw_pages lent;		/* by the PF's */

	atomic_long_t counter[C_NR];
	u32 *by_opcode;			/* since the module was loaded */
	u32 *this_probe;		/* since ENABLE_HCA */

	/* Knobs that are looked at all the time, kept in step with the rules. */
	unsigned long knobs_seen;
	u64 k_fw_wait_ms, k_link_delay_ms, k_active_delay_ms, k_sm_delay_ms;
	u64 k_vpd_ms;
	enum card_link k_link, k_link_before;
	bool k_sm, k_real_sm, k_switch_sm, k_silent, k_gone;
	u8 k_syndrome;
};

/* A datagram on the wire. */
struct packet {
	struct card_fn *from;
	u16 slid, dlid;
	u32 sqpn, dqpn;
	u32 qkey;
	u16 pkey;
	u8 sl;
	bool has_grh;
	u8 grh[40];
	unsigned int len;
	u8 data[4096 + 64];
};

/* What is told of a datagram of enhanced IPoIB by its headers. */
struct ip_headers {
	u16 type;
	u8 version, protocol;
	bool fragment, ports;
	u16 sport, dport;
	u8 address_len;
	u8 *from, *to;
	u8 *ip, *payload;		/* NULL if it is not IP */
	size_t payload_len;
};

extern spinlock_t card_lock;
extern struct card_fn *card_pf[CARD_MAX_PFS];
extern unsigned int card_pfs;
extern unsigned long card_knobs_version;

static inline void count(struct card_fn *fn, enum card_counter which)
{
	atomic_long_inc(&fn->counter[which]);
}

static inline u64 now_ns(void)
{
	return ktime_get_ns();
}

/* The driver's memory: no IOMMU stands between, so DMA is physical. */
static inline void *dma_virt(u64 addr)
{
	return addr ? phys_to_virt(addr) : NULL;
}

static inline void *object_at(struct object *o, size_t offset)
{
	size_t page = offset >> o->page_shift;

	if (page >= o->pages)
		return NULL;
	return dma_virt(o->page[page] + (offset & ((1UL << o->page_shift) - 1)));
}

/* Every function of every card; f is NULL-checked. */
#define for_each_fn_of(pf, f, i)					\
	for ((i) = -1; (i) < (int)(pf)->total_vfs; (i)++)		\
		if (((f) = (i) < 0 ? (pf) : (pf)->vfs[i]) != NULL)

/* bus.c */
int bus_start(void);
void bus_stop(void);

/* iommu.c */
int iommu_start(void);
void iommu_stop(void);
bool bus_vfs_enabled(struct card_fn *pf);
bool bus_memory_on(struct card_fn *fn);
bool bus_msix_on(struct card_fn *fn);
bool bus_master_on(struct card_fn *fn);
void bus_flr_done(struct card_fn *fn);
void bus_type(struct card_fn *pf);
void bus_knobs(struct card_fn *fn);
int bus_parse(const char *text);

/* firmware.c: power, reset, health, the threads */
int firmware_start(void);
void firmware_stop(void);
void firmware_reset(struct card_fn *fn);
void firmware_drop_state(struct card_fn *fn);
bool firmware_passed_twice(const struct slot *s);
void firmware_mark_pass(struct slot *s);

/* command.c: the queue, mailboxes and delivery */
bool command_pass(struct card_fn *fn);
void command_forget(struct card_fn *fn);

/* execute.c: what commands do; the status of the answer */
u8 execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len, void *out,
	   size_t out_len);

/* caps.c */
void caps_general(struct card_fn *fn, void *cap, bool max);
void caps_ipoib(void *cap);
void caps_flow_tables(void *cap);
bool caps_enhanced(struct card_fn *fn);

/* registers.c: ACCESS_REG and MAD_IFC */
u8 register_access(struct card_fn *fn, u16 id, bool write, void *data,
		   size_t len);
void registers_mad(struct card_fn *fn, u8 *mad, u8 *answer);

/* objects.c */
u8 objects_execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len,
		   void *out, size_t out_len, bool *mine);
u8 object_take_pages(struct object *o, unsigned int log_page_size, void *in,
		     size_t in_len, const __be64 *pas);
struct object *object_find(struct card_fn *fn, enum object_type type, u32 n);
void objects_free(struct card_fn *fn);
void objects_count(struct card_fn *fn, unsigned int *n);
void objects_show(struct card_fn *fn, struct seq_file *m);
void objects_show_left(struct card_fn *fn, struct seq_file *m);

/* event.c */
void event_post(struct card_fn *fn, struct card_eq *eq, u8 type, u8 sub_type,
		const void *data, size_t len);
bool event_async(struct card_fn *fn, u8 type, u8 sub_type, const void *data,
		 size_t len);
void event_vectors(struct card_fn *fn);
void *cq_next_entry(struct card_cq *cq);
void cq_publish(struct card_cq *cq, void *entry, u8 opcode);
bool cq_pass(struct card_fn *fn);

/* port.c: ports, virtual ports, what the subnet manager assigns */
void port_pass(struct card_fn *pf);
enum card_link vport_state(struct card_fn *fn);
u8 vport_execute(struct card_fn *fn, u16 opcode, void *in, void *out,
		 size_t out_len, bool *mine);
void port_init(struct card_fn *fn);
void vport_latch(struct card_fn *fn);
u64 vport_guid(struct card_fn *fn);
bool port_has_sm(struct card_fn *pf);
u16 pkey_at(struct card_fn *fn, unsigned int index);
u16 pkey_of_knob(struct card_fn *pf, unsigned int index);

/* wire.c: queue pairs at work, and the switch */
bool wire_pass(struct card_fn *fn);
void wire_send(struct packet *p);
struct card_fn *wire_find(u64 guid);	/* an active port */
void qp_flush(struct card_qp *qp);
void wire_detach(struct card_qp *qp);
u8 wire_group(struct card_qp *qp, const union ib_gid *gid, bool attach);

void *wqe_at(struct card_qp *qp, u32 offset);
void wire_address(struct card_qp *qp, struct card_qp *queue, u32 at, struct packet *p);
ssize_t wire_gather(struct card_qp *qp, u32 at, u32 end, u8 *to, size_t room);
void wire_send_as(struct packet *p);
void wire_deliver(struct card_fn *to, struct packet *p);

/* enhanced.c: queues and datagrams of enhanced IPoIB */
u8 enhanced_make_rq(struct card_fn *fn, struct card_qp *q, void *in, size_t in_len);
u8 enhanced_make_sq(struct card_fn *fn, struct card_qp *q, void *in, size_t in_len);
u8 enhanced_make_tis(struct card_fn *fn, struct card_tis *tis, void *in, size_t in_len);
u8 enhanced_make_tir(struct card_fn *fn, struct card_tir *tir, void *in, size_t in_len);
u8 enhanced_make_rqt(struct card_fn *fn, struct card_rqt *rqt, void *in, size_t in_len);
u8 enhanced_execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len, bool *mine);
bool enhanced_send(struct card_qp *q, u32 at, u32 end, u8 opcode, struct packet *p);
void enhanced_headers(struct packet *p, struct ip_headers *h);
__sum16 enhanced_sum(struct packet *p);

/* steering.c: which receive queue */
u8 steering_make_table(struct card_flow_table *t, void *in, size_t in_len);
bool steering_table_in_use(struct card_flow_table *t);
void steering_clear_table(struct card_flow_table *t);
u8 steering_execute(struct card_fn *fn, u16 opcode, void *in, size_t in_len,
		    void *out, bool *mine);
struct card_qp *steering_queue(struct card_qp *qp, const struct ip_headers *h,
			       u32 *hash, u8 *hash_type);

/* sa.c */
void sa_request(struct packet *p);
void sm_info(u8 *info, u64 port_guid, u8 priority);
void sa_forget(void);

/* sma.c: agents of ports and of the switch, for a subnet manager in the guest */
void sma_init(struct card_fn *pf);
void sma_packet(struct packet *p);
void sma_link(struct card_fn *pf, bool up);
void sma_by_switch(struct card_fn *pf);
__be16 sma_host(struct card_fn *fn, bool set, u16 attribute, u32 modifier, u8 *info);

/* nv.c: settings that firmware keeps, and the way to them */
void nv_start(void __iomem *at);
void nv_knobs(struct card_fn *pf);
unsigned int nv_vfs(struct card_fn *pf);
u32 nv_read(struct card_fn *pf, unsigned int reg);
void nv_write(struct card_fn *pf, unsigned int reg, u32 value);
bool nv_parse(const char *text, u32 (*values)[4]);
bool nv_register(const char *name);

/* knobs.c: rules WHO/KNOB=VALUE; the last one that fits wins */
#define VALUE_LEN 64
bool knob_text(struct card_fn *fn, const char *knob, char *value);
u64 knob_number(struct card_fn *fn, const char *knob, u64 fallback);
u64 knob_guid(struct card_fn *fn, const char *knob, u64 fallback);
void knobs_refresh(struct card_fn *fn);
int knobs_add(const char *text);
void knobs_show(struct seq_file *m);
void knobs_free(void);
/* Whether the next command of that name is to fail, with which status. */
bool knob_fails(struct card_fn *fn, const char *opcode, u32 nth, u8 *status);

/* account.c */
void account_start(void);
void account_stop(void);
const char *opcode_name(u16 opcode);

#endif
