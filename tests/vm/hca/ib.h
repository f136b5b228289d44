/* SPDX-License-Identifier: GPL-2.0-only */
/* The RDMA half: objects given to ib_core, and the switch between them. */
#ifndef IBSIM_IB_H
#define IBSIM_IB_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_sa.h>
#include <rdma/ib_verbs.h>
#include "sim.h"

#define SIM_SM_LID 1
#define SIM_GRH_LEN 40
#define SIM_MAX_MSG 4096
#define SIM_GID_TABLE 8
#define SIM_PKEY_TABLE 128
#define SIM_MCAST_LID 0xc000

struct sim_ib;

#if SIM_OLDER
typedef u8 sim_num;			/* of a port */
#else
typedef u32 sim_num;
#endif

struct sim_port {
	struct sim_ib *ib;
	unsigned int num;
	u16 lid;			/* this port's address for good */
	enum ib_port_state state;
	enum ib_port_phys_state phys;
	struct work_struct work;
	bool stopped;			/* no event is told any more */
	struct net_device *ndev;	/* of a port in Ethernet mode */
};

struct sim_ib {
	struct ib_device ibdev;
	struct sim_func *func;
	struct list_head node;		/* in the fabric, under its lock */
	struct sim_port port[SIM_MAX_PORTS];
	struct sim_alias *alias;	/* mlx4: iov/ in sysfs */
	struct ib_pd *own_pd;		/* held by the driver for itself */
	struct ib_cq *own_cq;
	struct ib_qp *own_qp;
#if SIM_OLDER
	struct device_dma_parameters dma_parms;
#endif
};

struct sim_ucontext {
	struct ib_ucontext ibuc;
};

struct sim_pd {
	struct ib_pd ibpd;
};

struct sim_cq {
	struct ib_cq ibcq;
	spinlock_t lock;
	struct ib_wc *ring;
	unsigned int size, head, count;
	bool armed;
};

struct sim_rwqe {
	u64 wr_id;
	int num_sge;
	struct ib_sge sge[4];
};

struct sim_qp {
	struct ib_qp ibqp;
	struct list_head node;		/* in the fabric, under its lock */
	struct sim_port *port;
	spinlock_t lock;		/* state and receive queue */
	enum ib_qp_state state;
	u32 qkey;
	u16 pkey_index;
	bool signal_all;
	struct sim_rwqe *rq;
	unsigned int rq_size, rq_head, rq_count;
	unsigned int max_sge;
	struct ib_qp_cap cap;
};

struct sim_ah {
	struct ib_ah ibah;
	struct rdma_ah_attr attr;
};

/* A datagram on the wire. */
struct sim_packet {
	struct list_head node;
	u16 slid, dlid;
	u32 sqpn, dqpn;
	u32 qkey;
	u16 pkey;
	u8 sl;
	bool has_grh, has_imm;
	__be32 imm;
	struct ib_grh grh;
	unsigned int len;
	u8 data[SIM_MAX_MSG];
};

static inline struct sim_ib *to_sim(struct ib_device *ibdev)
{
	return container_of(ibdev, struct sim_ib, ibdev);
}

static inline struct sim_qp *to_sqp(struct ib_qp *qp)
{
	return container_of(qp, struct sim_qp, ibqp);
}

static inline struct sim_cq *to_scq(struct ib_cq *cq)
{
	return container_of(cq, struct sim_cq, ibcq);
}

static inline struct sim_ah *to_sah(struct ib_ah *ah)
{
	return container_of(ah, struct sim_ah, ibah);
}

static inline bool sim_port_up(struct sim_port *p)
{
	return READ_ONCE(p->state) == IB_PORT_ACTIVE;
}

/* One full member of the default partition: all others are empty. */
static inline u16 sim_port_pkey(unsigned int index)
{
	return index ? 0 : 0xffff;
}

/* ib_port.c */
extern const struct ib_device_ops sim_port_ops;
extern const struct attribute_group sim_group;
void sim_port_start(struct sim_port *p, struct sim_ib *ib, unsigned int num);
void sim_port_stop(struct sim_port *p);
void sim_ports_kick(void *ib);

/* ib_eth.c */
int sim_eth_add(struct sim_port *p);
void sim_eth_del(struct sim_port *p);
bool sim_eth_runs(struct sim_port *p);
void sim_eth_carrier(struct sim_port *p);

/* ib_verbs.c, ib_qp.c */
extern const struct ib_device_ops sim_verbs_ops;
extern const struct ib_device_ops sim_qp_ops;
void sim_cq_push(struct ib_cq *cq, const struct ib_wc *wc);

/* ib_switch.c */
int sim_switch_init(void);
void sim_switch_exit(void);
u16 sim_switch_lid(void);
void sim_switch_add(struct sim_ib *ib);
void sim_switch_del(struct sim_ib *ib);
void sim_switch_add_qp(struct sim_qp *qp);
void sim_switch_del_qp(struct sim_qp *qp);
int sim_switch_attach(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int sim_switch_detach(struct ib_qp *qp, union ib_gid *gid, u16 lid);
void sim_switch_send(struct sim_packet *packet);
bool sim_switch_gid_lid(const union ib_gid *gid, u16 *lid);
bool sim_qp_receive(struct sim_qp *qp, const struct sim_packet *p);

/* ib_sa.c: called with a request sent to the SM's LID */
void sim_sa_request(struct sim_packet *request);
void sim_sa_forget(void);

/* ib_vf.c */
extern const struct ib_device_ops sim_vf_ops;

/* ib_alias.c */
#ifdef SIM_MLX4
int sim_alias_add(struct sim_ib *ib);
void sim_alias_del(struct sim_ib *ib);
#else
static inline int sim_alias_add(struct sim_ib *ib) { return 0; }
static inline void sim_alias_del(struct sim_ib *ib) { }
#endif

#endif
