// SPDX-License-Identifier: GPL-2.0-only
/*
 * The RDMA half of the simulated HCA, which registers the ib_device: an auxiliary
 * driver, found by udev through modalias auxiliary:mlx5_core.rdma, or, in older
 * kernels, an interface of mlx5_core.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include "ib.h"

static unsigned int init_delay_ms;
module_param(init_delay_ms, uint, 0400);
MODULE_PARM_DESC(init_delay_ms, "sleep uninterruptibly while loading");

/*
 * What the driver holds for itself in each device, as mlx5_ib its UMR queue pair
 * (mlx5r_umr_resource_init): a user of the device for who only counts resources.
 */
static void own_free(struct sim_ib *ib)
{
	if (!IS_ERR_OR_NULL(ib->own_qp))
		ib_destroy_qp(ib->own_qp);
	if (!IS_ERR_OR_NULL(ib->own_cq))
		ib_free_cq(ib->own_cq);
	if (!IS_ERR_OR_NULL(ib->own_pd))
		ib_dealloc_pd(ib->own_pd);
}

static int own_alloc(struct sim_ib *ib)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_UD, .port_num = 1,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };
	int err;

	ib->own_pd = ib_alloc_pd(&ib->ibdev, 0);
	if (IS_ERR(ib->own_pd))
		return PTR_ERR(ib->own_pd);
	ib->own_cq = ib_alloc_cq(&ib->ibdev, NULL, 2, 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(ib->own_cq))
		return PTR_ERR(ib->own_cq);
	init.send_cq = ib->own_cq;
	init.recv_cq = ib->own_cq;
	ib->own_qp = ib_create_qp(ib->own_pd, &init);
	if (IS_ERR(ib->own_qp))
		return PTR_ERR(ib->own_qp);
	err = ib_modify_qp(ib->own_qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX |
			   IB_QP_PORT | IB_QP_QKEY);
	attr.qp_state = IB_QPS_RTR;
	err = err ?: ib_modify_qp(ib->own_qp, &attr, IB_QP_STATE);
	attr.qp_state = IB_QPS_RTS;
	return err ?: ib_modify_qp(ib->own_qp, &attr, IB_QP_STATE | IB_QP_SQ_PSN);
}

/* Memory is reached by kernel address: there is no DMA device. */
static void without_dma(struct sim_ib *ib)
{
#if SIM_OLDER
	struct device *dev = &ib->ibdev.dev;

	dev->dma_parms = &ib->dma_parms;
	dma_set_max_seg_size(dev, UINT_MAX);
	dma_coerce_mask_and_coherent(dev, DMA_BIT_MASK(64));
#endif
}

static struct sim_ib *add(struct sim_func *f)
{
	struct sim_ib *ib;
	unsigned int i;
	int err;

	ib = ib_alloc_device(sim_ib, ibdev);
	if (!ib)
		return ERR_PTR(-ENOMEM);
	ib->func = f;
	ib->ibdev.dev.parent = &f->pdev->dev;
	ib->ibdev.phys_port_cnt = f->nports;
	ib->ibdev.num_comp_vectors = 2;
	ib->ibdev.node_type = RDMA_NODE_IB_CA;
	ib->ibdev.node_guid = cpu_to_be64(f->node_guid);
	snprintf(ib->ibdev.node_desc, sizeof(ib->ibdev.node_desc),
		 "%s simulated HCA", SIM_FAMILY);
	ib_set_device_ops(&ib->ibdev, &sim_port_ops);
	ib_set_device_ops(&ib->ibdev, &sim_verbs_ops);
	ib_set_device_ops(&ib->ibdev, &sim_qp_ops);
#if SIM_OLDER
	rdma_set_device_sysfs_group(&ib->ibdev, &sim_group);
#endif
	if (f->total_vfs && strcmp(SIM_FAMILY, "mlx4"))
		ib_set_device_ops(&ib->ibdev, &sim_vf_ops);
	for (i = 0; i < f->nports; i++)
		sim_port_start(&ib->port[i], ib, i + 1);
	sim_switch_add(ib);

	err = 0;
	for (i = 0; i < f->nports && !err; i++)
		err = sim_eth_add(&ib->port[i]);
	without_dma(ib);
	if (!err)
		err = ib_register_device(&ib->ibdev, SIM_FAMILY "_%d", NULL);
	if (err) {
		sim_switch_del(ib);
		for (i = 0; i < f->nports; i++) {
			ib_device_set_netdev(&ib->ibdev, NULL, i + 1);
			sim_eth_del(&ib->port[i]);
			sim_port_stop(&ib->port[i]);
		}
		ib_dealloc_device(&ib->ibdev);
		return ERR_PTR(err);
	}
	sim_count(f, SIM_C_rdma_register);
	err = own_alloc(ib);
	if (err)
		pci_err(f->pdev, "no resources for the driver itself: %d\n", err);
	if (sim_alias_add(ib))
		pci_err(f->pdev, "no alias GUIDs in sysfs\n");
	sim_set_event(f, sim_ports_kick, ib);
	sim_ports_kick(ib);
	return ib;
}

static void del(struct sim_ib *ib)
{
	struct sim_func *f = ib->func;
	unsigned int i;

	sim_set_event(f, NULL, NULL);
	for (i = 0; i < f->nports; i++)
		sim_port_stop(&ib->port[i]);
	sim_alias_del(ib);
	own_free(ib);
	/* The ports still carry packets: users leave their groups now. */
	ib_unregister_device(&ib->ibdev);
	for (i = 0; i < f->nports; i++)
		sim_eth_del(&ib->port[i]);
	sim_switch_del(ib);
	sim_count(f, SIM_C_rdma_unregister);
	ib_dealloc_device(&ib->ibdev);
}

#if SIM_OLDER

static void *ib_add(struct sim_func *f)
{
	return add(f);
}

static void ib_remove(void *rdma)
{
	del(rdma);
}

static const struct sim_interface interface = {
	.add = ib_add,
	.remove = ib_remove,
};

static int bind(void)
{
	sim_register_interface(&interface);
	return 0;
}

static void unbind(void)
{
	sim_unregister_interface();
}

#else

static int ib_probe(struct auxiliary_device *adev,
		    const struct auxiliary_device_id *id)
{
	struct sim_ib *ib = add(container_of(adev, struct sim_adev, adev)->func);

	if (IS_ERR(ib))
		return PTR_ERR(ib);
	auxiliary_set_drvdata(adev, ib);
	return 0;
}

static void ib_remove(struct auxiliary_device *adev)
{
	del(auxiliary_get_drvdata(adev));
}

static const struct auxiliary_device_id ids[] = {
	{ .name = SIM_CORE "." SIM_ADEV_NAME },
	{ }
};
MODULE_DEVICE_TABLE(auxiliary, ids);

static struct auxiliary_driver driver = {
	.name = "rdma",
	.probe = ib_probe,
	.remove = ib_remove,
	.id_table = ids,
};

static int bind(void)
{
	return auxiliary_driver_register(&driver);
}

static void unbind(void)
{
	auxiliary_driver_unregister(&driver);
}

#endif

static int __init sim_ib_init(void)
{
	int err;

	if (init_delay_ms)
		msleep(init_delay_ms);
	err = sim_switch_init();
	if (err)
		return err;
	err = bind();
	if (err)
		sim_switch_exit();
	return err;
}

static void __exit sim_ib_exit(void)
{
	unbind();
	sim_switch_exit();
}

module_init(sim_ib_init);
module_exit(sim_ib_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated HCA, RDMA half (" SIM_FAMILY "_ib)");
