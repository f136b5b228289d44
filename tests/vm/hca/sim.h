/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two halves of the simulated HCA share: the PCI half (mlx5_core)
 * that plays the firmware, and the RDMA half (mlx5_ib) that talks to ib_core.
 *
 * The same source is built twice, as mlx5_* and, with SIM_MLX4 defined, as
 * mlx4_*.  Exported symbols carry the family's name so that both can be loaded.
 */
#ifndef IBSIM_SIM_H
#define IBSIM_SIM_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/pci.h>
#include <linux/version.h>
#include <linux/workqueue.h>

/*
 * Before Linux 5.11 there is no auxiliary bus: the RDMA half is bound as mlx5's was
 * then.  What else differs is told for 5.10; no kernel between it and 6.1 was tried.
 */
#define SIM_OLDER (LINUX_VERSION_CODE < KERNEL_VERSION(5, 11, 0))
#if !SIM_OLDER
#include <linux/auxiliary_bus.h>
#endif

#ifdef SIM_MLX4
#define SIM_FAMILY "mlx4"
#define SIM_SYM(name) mlx4_sim_##name
#else
#define SIM_FAMILY "mlx5"
#define SIM_SYM(name) mlx5_sim_##name
#endif
#define SIM_CORE SIM_FAMILY "_core"
#define SIM_ADEV_NAME "rdma"

#define SIM_MAX_PORTS 2
#define SIM_VALUE_LEN 64
#define SIM_EVER "ever"

/* Counters, one set per PCI address; the name is what debugfs prints. */
#define SIM_COUNTERS(X)		\
	X(probe)		\
	X(probe_failed)		\
	X(remove)		\
	X(sriov_configure)	\
	X(sysfs_write)		\
	X(set_node_guid)	\
	X(set_port_guid)	\
	X(set_policy)		\
	X(query_vf)		\
	X(query_port)		\
	X(fw_cmd)		\
	X(rdma_register)	\
	X(rdma_unregister)	\
	X(port_event)		\
	X(sa_request)		\
	X(tx_packet)		\
	X(rx_packet)		\
	X(rx_no_buffer)

#define SIM_COUNTER_ENUM(name) SIM_C_##name,
enum sim_counter { SIM_COUNTERS(SIM_COUNTER_ENUM) SIM_C_NR };

enum sim_policy { SIM_POLICY_DOWN, SIM_POLICY_UP, SIM_POLICY_FOLLOW };

/* A lock that is held until told otherwise: a device's, or RTNL. */
struct sim_hold {
	struct mutex mutex;
	const char *bdf;		/* NULL: RTNL */
	struct pci_dev *pdev;
	struct task_struct *task;
	struct completion held;
};

/*
 * Everything that outlives a driver binding, keyed by PCI address: a test
 * must be able to read the count of unbinds after the unbind.
 */
struct sim_slot {
	struct list_head node;
	char bdf[16];
	atomic_long_t counter[SIM_C_NR];
	struct dentry *dir;
	u64 last_node_guid;		/* what the last probe latched */
	u64 last_port_guid[SIM_MAX_PORTS];
	struct sim_hold device_lock;
};

/*
 * One VF as its PF sees it.  "fw" is the firmware's truth and is lost when
 * the VF is disabled; "cache" is the PF driver's copy, written back on the
 * next enable and lost when the PF driver goes.
 */
struct sim_vf_values {
	u64 node_guid;
	u64 port_guid[SIM_MAX_PORTS];	/* by the PF's port */
	enum sim_policy policy;
};

struct sim_vf {
	bool enabled;
	struct sim_vf_values fw;
	struct sim_vf_values cache;
	bool node_valid;		/* set by netlink only, as in OFED */
	bool port_valid;
	struct sim_func *pf;
	int index;
	struct kobject kobj;
	bool kobj_live;
};

struct sim_func {
	struct list_head node;
	struct pci_dev *pdev;
	struct sim_slot *slot;

	bool is_vf;
	struct sim_func *pf;		/* NULL for a PF and a passed-through VF */
	int vf_index;

	unsigned int nports;
	unsigned int first_port;	/* the PF's, which is a VF's port 1 */
	u64 node_guid;			/* latched at probe */
	u64 port_guid[SIM_MAX_PORTS];

	struct mutex serial_lock;	/* firmware starts one of a card at a time */
	struct mutex enable_lock;	/* one enabling or disabling at a time */
	struct mutex sriov_lock;	/* vfs[] */
	struct sim_vf *vfs;
	int total_vfs;
	int num_vfs;
	struct kobject *sriov_kobj;
	bool ofed;

#if SIM_OLDER
	struct list_head bound;
	void *rdma;			/* what the RDMA half made of it */
#else
	struct auxiliary_device *adev;
#endif

	struct mutex event_lock;	/* guards the hook of the RDMA half */
	void (*event)(void *ctx);
	void *event_ctx;
};

#if SIM_OLDER
/* The RDMA half, as mlx5_ib is a struct mlx5_interface there. */
struct sim_interface {
	void *(*add)(struct sim_func *f);
	void (*remove)(void *rdma);
};
#else
struct sim_adev {
	struct auxiliary_device adev;
	struct sim_func *func;
};
#endif

static inline void sim_count(struct sim_func *f, enum sim_counter c)
{
	atomic_long_inc(&f->slot->counter[c]);
}

/* A command that a real driver would send to the card's firmware. */
static inline void sim_fw_cmd(struct sim_func *f, enum sim_counter c)
{
	sim_count(f, c);
	sim_count(f, SIM_C_fw_cmd);
}

/* knobs.c: rules WHO/KNOB=VALUE; the last one that fits wins. */
#define sim_knob_str SIM_SYM(knob_str)
#define sim_knob_u64 SIM_SYM(knob_u64)
#define sim_knob_port SIM_SYM(knob_port)
bool sim_knob_str(struct pci_dev *pdev, const char *knob, char *value);
u64 sim_knob_u64(struct pci_dev *pdev, const char *knob, u64 fallback);
/* KNOB<port> if given, else KNOB; false if neither is. */
bool sim_knob_port(struct pci_dev *pdev, const char *knob, unsigned int port,
		   char *value);
int sim_knob_errno(struct pci_dev *pdev, const char *knob);
int sim_knobs_add(const char *text);
void sim_knobs_free(void);
struct seq_file;
void sim_knobs_show(struct seq_file *m);

/* core_sick.c */
#define sim_silence SIM_SYM(silence)
/* Sleep for as long as KNOB, milliseconds or "ever", says. */
void sim_silence(struct sim_func *f, const char *knob);
void sim_knobs_changed(void);
/* DIR/NAME: 1 takes the lock, 0 gives it back. */
void sim_hold_init(struct sim_hold *h, const char *name, const char *bdf,
		   struct dentry *dir);
void sim_hold_end(struct sim_hold *h);

/* slots.c */
struct sim_slot *sim_slot_get(struct pci_dev *pdev);
void sim_slots_init(void);
void sim_slots_free(void);

/* core_main.c */
#define sim_port_is_eth SIM_SYM(port_is_eth)
#define sim_set_event SIM_SYM(set_event)
#define sim_link SIM_SYM(link)
#define sim_vf_ports SIM_SYM(vf_ports)
bool sim_port_is_eth(struct sim_func *f, unsigned int port);
bool sim_link(struct sim_func *f, unsigned int port);
/* How many ports a VF has, and which of the PF's is its first. */
unsigned int sim_vf_ports(struct sim_func *pf, int vf, unsigned int *first);
void sim_set_event(struct sim_func *f, void (*event)(void *ctx), void *ctx);
void sim_event(struct sim_func *f);
void sim_event_all(void);
void sim_event_family(struct sim_func *pf);
extern struct pci_driver sim_pci_driver;

/* core_bind.c: the RDMA half of each function */
int sim_rdma_add(struct sim_func *f);
void sim_rdma_del(struct sim_func *f);
#if SIM_OLDER
#define sim_register_interface SIM_SYM(register_interface)
#define sim_unregister_interface SIM_SYM(unregister_interface)
void sim_register_interface(const struct sim_interface *i);
void sim_unregister_interface(void);
#endif

/* core_sriov.c: the firmware's side of SR-IOV */
#define sim_vf_set_guid SIM_SYM(vf_set_guid)
#define sim_vf_set_policy SIM_SYM(vf_set_policy)
#define sim_vf_query SIM_SYM(vf_query)
#define sim_vf_own_policy SIM_SYM(vf_own_policy)
/* PORT is the PF's; 0: the node GUID. */
int sim_vf_set_guid(struct sim_func *pf, int vf, unsigned int port, u64 guid,
		    bool from_netlink);
int sim_vf_set_policy(struct sim_func *pf, int vf, enum sim_policy policy);
int sim_vf_query(struct sim_func *pf, int vf, struct sim_vf *out);
enum sim_policy sim_vf_own_policy(struct sim_func *f);
void sim_vf_latch(struct sim_func *f);
int sim_sriov_init(struct sim_func *f);
void sim_sriov_exit(struct sim_func *f);
int sim_sriov_set(struct sim_func *f, int num);
int sim_sriov_configure(struct pci_dev *pdev, int num);

/* core_types.c, of mlx4 */
int sim_types_init(struct sim_func *f);
void sim_types_exit(struct sim_func *f);

/* core_ofed.c */
int sim_ofed_init(struct sim_func *f);
void sim_ofed_close(struct sim_func *f);
void sim_ofed_exit(struct sim_func *f);
int sim_ofed_add_vfs(struct sim_func *f, int num);
void sim_ofed_del_vfs(struct sim_func *f);

#endif
