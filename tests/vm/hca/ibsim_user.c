// SPDX-License-Identifier: GPL-2.0-only
/*
 * A kernel client of RDMA devices, as NFS or NVMe over RDMA is one: of the device
 * named dev= it owns a queue pair that is ready to send, until it is unloaded, or
 * until the device goes. As a server it listens at no address of its own, for which
 * the connection manager makes an identifier on each device there is, or at the address at=,
 * for which it makes one on the device that has it.
 */
#include <linux/err.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

static char *dev = "";
module_param(dev, charp, 0400);
MODULE_PARM_DESC(dev, "name of the RDMA device to use");

static char *at = "0.0.0.0";
module_param(at, charp, 0400);
MODULE_PARM_DESC(at, "IPv4 address to listen at");

struct sim_user {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
};

static struct ib_client user_client;
static struct rdma_cm_id *listener;

static void user_free(struct sim_user *u)
{
	if (!IS_ERR_OR_NULL(u->qp))
		ib_destroy_qp(u->qp);
	if (!IS_ERR_OR_NULL(u->cq))
		ib_free_cq(u->cq);
	if (!IS_ERR_OR_NULL(u->pd))
		ib_dealloc_pd(u->pd);
	kfree(u);
}

static int make_ready(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1, .qkey = 0x11111111,
	};
	int err;

	err = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	err = err ?: ib_modify_qp(qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return err ?: ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

static int user_add(struct ib_device *device)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD, .port_num = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct sim_user *u;
	int err;

	if (strcmp(dev_name(&device->dev), dev))
		return -EOPNOTSUPP;
	u = kzalloc(sizeof(*u), GFP_KERNEL);
	if (!u)
		return -ENOMEM;
	u->pd = ib_alloc_pd(device, 0);
	err = PTR_ERR_OR_ZERO(u->pd);
	if (err)
		goto out;
	u->cq = ib_alloc_cq(device, NULL, 2, 0, IB_POLL_DIRECT);
	err = PTR_ERR_OR_ZERO(u->cq);
	if (err)
		goto out;
	init.send_cq = u->cq;
	init.recv_cq = u->cq;
	u->qp = ib_create_qp(u->pd, &init);
	err = PTR_ERR_OR_ZERO(u->qp);
	if (!err)
		err = make_ready(u->qp);
	if (err)
		goto out;
	ib_set_client_data(device, &user_client, u);
	return 0;
out:
	user_free(u);
	return err;
}

static void user_remove(struct ib_device *device, void *u)
{
	user_free(u);
}

static struct ib_client user_client = {
	.name = "ibsim_user",
	.add = user_add,
	.remove = user_remove,
};

static int refuse(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	/* Whoever asks is told no: the new identifier is destroyed. */
	return event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
}

static int listen(void)
{
	struct sockaddr_in own = {
		.sin_family = AF_INET, .sin_port = htons(20049),
		.sin_addr.s_addr = in_aton(at),
	};
	int err;

	listener = rdma_create_id(&init_net, refuse, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	err = rdma_bind_addr(listener, (struct sockaddr *)&own);
	err = err ?: rdma_listen(listener, 1);
	if (err)
		rdma_destroy_id(listener);
	return err;
}

static int __init user_init(void)
{
	int err = listen();

	if (err)
		return err;
	err = ib_register_client(&user_client);
	if (err)
		rdma_destroy_id(listener);
	return err;
}

static void __exit user_exit(void)
{
	ib_unregister_client(&user_client);
	rdma_destroy_id(listener);
}

module_init(user_init);
module_exit(user_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A kernel client of RDMA devices, for tests");
