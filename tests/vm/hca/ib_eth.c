// SPDX-License-Identifier: GPL-2.0-only
/*
 * The Ethernet netdev of a port in Ethernet mode, as mlx5e makes one: a child of the PCI
 * function, with a carrier while it is up and the cable is in. It carries no packets. The
 * core fills the port's GID table from its addresses.
 */
#include <linux/etherdevice.h>
#include <linux/netdevice.h>
#include "ib.h"

struct sim_eth {
	struct sim_port *port;
};

/* Up or down: the port follows. */
static int eth_open(struct net_device *ndev)
{
	struct sim_eth *eth = netdev_priv(ndev);

	if (!READ_ONCE(eth->port->stopped))
		queue_work(system_wq, &eth->port->work);
	return 0;
}

static netdev_tx_t eth_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops eth_ops = {
	.ndo_open = eth_open,
	.ndo_stop = eth_open,
	.ndo_start_xmit = eth_xmit,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_set_mac_address = eth_mac_addr,
};

/* Before the device is registered, which reads the netdev's addresses then. */
int sim_eth_add(struct sim_port *p)
{
	struct sim_func *f = p->ib->func;
	u64 guid = f->port_guid[p->num - 1];
	u8 mac[ETH_ALEN] = {
		guid >> 56, guid >> 48, guid >> 40, guid >> 16, guid >> 8, guid,
	};
	struct net_device *ndev;
	struct sim_eth *eth;
	int err;

	if (!sim_port_is_eth(f, p->num))
		return 0;
	ndev = alloc_etherdev(sizeof(*eth));
	if (!ndev)
		return -ENOMEM;
	eth = netdev_priv(ndev);
	eth->port = p;
	SET_NETDEV_DEV(ndev, &f->pdev->dev);
	ndev->dev_port = p->num - 1;
	ndev->netdev_ops = &eth_ops;
	mac[0] &= 0xfc;
	eth_hw_addr_set(ndev, mac);
	netif_carrier_off(ndev);
	err = register_netdev(ndev);
	if (err) {
		free_netdev(ndev);
		return err;
	}
	p->ndev = ndev;
	return ib_device_set_netdev(&p->ib->ibdev, ndev, p->num);
}

/* When the core has let it go. */
void sim_eth_del(struct sim_port *p)
{
	struct net_device *ndev = p->ndev;

	if (!ndev)
		return;
	unregister_netdev(ndev);
	cancel_work_sync(&p->work);
	free_netdev(ndev);
	p->ndev = NULL;
}

bool sim_eth_runs(struct sim_port *p)
{
	return p->ndev && netif_running(p->ndev);
}

void sim_eth_carrier(struct sim_port *p)
{
	if (!p->ndev)
		return;
	if (p->state == IB_PORT_ACTIVE)
		netif_carrier_on(p->ndev);
	else
		netif_carrier_off(p->ndev);
}
