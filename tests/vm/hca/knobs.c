// SPDX-License-Identifier: GPL-2.0-only
/*
 * Knobs: a list of rules WHO/KNOB=VALUE, given on the module's (or kernel's)
 * command line or written to debugfs, looked up at the moment of use.  So a
 * rule can speak of a VF that does not exist yet, and changes at run time.
 *
 * WHO is a PCI address, "*", "pf", "vf", or PCI-ADDRESS+vf for all VFs of
 * that PF.
 */
#include <linux/ctype.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include "sim.h"

struct sim_rule {
	struct list_head node;
	char who[24];
	char knob[24];
	char value[SIM_VALUE_LEN];
};

static LIST_HEAD(rules);
static DEFINE_SPINLOCK(rules_lock);

/* A misspelt knob would make a test pass for the wrong reason. */
static const char * const known[] = {
	"board_id", "fw_ver", "guid_write", "latch", "link", "link1", "link2",
	"link_layer", "link_layer1", "link_layer2", "node_guid", "ofed", "port1_guid",
	"port2_guid", "port_query_ms", "ports", "probe_delay_ms", "probe_errno",
	"probe_fail_nth", "probe_serial_ms", "sriov_errno", "vf_guid_read",
	"vf_query_ms",
};

static bool is_vf(struct pci_dev *pdev)
{
	return pdev->is_virtfn;
}

static bool who_fits(const char *who, struct pci_dev *pdev)
{
	size_t n = strlen(who);

	if (!strcmp(who, "*"))
		return true;
	if (!strcmp(who, "pf"))
		return !is_vf(pdev);
	if (!strcmp(who, "vf"))
		return is_vf(pdev);
	if (n > 3 && !strcmp(who + n - 3, "+vf")) {
		const char *pf;

		if (!is_vf(pdev))
			return false;
		pf = pci_name(pci_physfn(pdev));
		return strlen(pf) == n - 3 && !strncmp(who, pf, n - 3);
	}
	return !strcmp(who, pci_name(pdev));
}

bool sim_knob_str(struct pci_dev *pdev, const char *knob, char *value)
{
	struct sim_rule *r;
	bool found = false;
	unsigned long flags;

	spin_lock_irqsave(&rules_lock, flags);
	list_for_each_entry(r, &rules, node) {
		if (!strcmp(r->knob, knob) && who_fits(r->who, pdev)) {
			strscpy(value, r->value, SIM_VALUE_LEN);
			found = true;
		}
	}
	spin_unlock_irqrestore(&rules_lock, flags);
	return found;
}
EXPORT_SYMBOL_GPL(sim_knob_str);

bool sim_knob_port(struct pci_dev *pdev, const char *knob, unsigned int port,
		   char *value)
{
	char name[24];

	snprintf(name, sizeof(name), "%s%u", knob, port);
	return sim_knob_str(pdev, name, value) ||
	       sim_knob_str(pdev, knob, value);
}
EXPORT_SYMBOL_GPL(sim_knob_port);

/* Plain numbers as in C, and GUIDs as aa:bb:...; checked when added. */
static int parse_u64(const char *text, u64 *out)
{
	char hex[17];
	int n = 0;

	if (!strchr(text, ':'))
		return kstrtou64(text, 0, out);
	for (; *text; text++) {
		if (*text == ':')
			continue;
		if (n == 16)
			return -EINVAL;
		hex[n++] = *text;
	}
	hex[n] = 0;
	return kstrtou64(hex, 16, out);
}

u64 sim_knob_u64(struct pci_dev *pdev, const char *knob, u64 fallback)
{
	char value[SIM_VALUE_LEN];
	u64 n;

	if (!sim_knob_str(pdev, knob, value) || parse_u64(value, &n))
		return fallback;
	return n;
}
EXPORT_SYMBOL_GPL(sim_knob_u64);

static const struct { const char *name; int number; } errnos[] = {
	{ "EPERM", EPERM }, { "EIO", EIO }, { "EAGAIN", EAGAIN },
	{ "ENOMEM", ENOMEM }, { "EBUSY", EBUSY }, { "ENODEV", ENODEV },
	{ "EINVAL", EINVAL }, { "ENOSPC", ENOSPC }, { "ERANGE", ERANGE },
	{ "ENOSYS", ENOSYS }, { "ETIMEDOUT", ETIMEDOUT },
	{ "EOPNOTSUPP", EOPNOTSUPP }, { "ENOENT", ENOENT },
};

static int parse_errno(const char *value)
{
	unsigned int n;
	int i;

	for (i = 0; i < ARRAY_SIZE(errnos); i++)
		if (!strcasecmp(value, errnos[i].name))
			return errnos[i].number;
	return kstrtouint(value, 0, &n) || n > 4095 ? -EINVAL : n;
}

/* The positive errno a knob holds, by name or number; 0 for none. */
int sim_knob_errno(struct pci_dev *pdev, const char *knob)
{
	char value[SIM_VALUE_LEN];

	if (!sim_knob_str(pdev, knob, value))
		return 0;
	return max(parse_errno(value), 0);
}

static bool one_of(const char *value, const char *a, const char *b)
{
	return !strcmp(value, a) || !strcmp(value, b);
}

static bool value_fits(const char *knob, const char *value)
{
	u64 number;

	if (!strcmp(knob, "board_id") || !strcmp(knob, "fw_ver"))
		return *value;
	if (strstarts(knob, "link_layer"))
		return one_of(value, "ib", "eth");
	if (strstarts(knob, "link"))
		return one_of(value, "down", "active");
	if (!strcmp(knob, "latch"))
		return one_of(value, "fresh", "stale");
	if (strstr(knob, "_errno"))
		return parse_errno(value) >= 0;
	if (strstr(knob, "_write"))
		return one_of(value, "ok", "drop") ||
		       parse_errno(value) >= 0;
	if (strstr(knob, "_query_ms") && !strcmp(value, SIM_EVER))
		return true;
	return !parse_u64(value, &number);
}

static int add_one(char *text)
{
	char *who = strsep(&text, "/");
	char *knob = text ? strsep(&text, "=") : NULL;
	struct sim_rule *r, *old;

	if (!text || match_string(known, ARRAY_SIZE(known), knob) < 0 ||
	    strlen(who) >= sizeof(r->who) || strlen(text) >= SIM_VALUE_LEN ||
	    !value_fits(knob, text)) {
		pr_err("%s: knob not understood: %s/%s=%s\n", SIM_CORE, who,
		       knob ?: "", text ?: "");
		return -EINVAL;
	}
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	strscpy(r->who, who, sizeof(r->who));
	strscpy(r->knob, knob, sizeof(r->knob));
	strscpy(r->value, text, sizeof(r->value));

	spin_lock_irq(&rules_lock);
	list_for_each_entry(old, &rules, node) {
		if (!strcmp(old->who, r->who) && !strcmp(old->knob, r->knob)) {
			list_del(&old->node);
			kfree(old);
			break;
		}
	}
	list_add_tail(&r->node, &rules);
	spin_unlock_irq(&rules_lock);
	return 0;
}

/* Rules separated by commas, blanks or newlines. */
int sim_knobs_add(const char *text)
{
	char *copy, *cursor, *one;
	int err = 0;

	copy = kstrdup(text, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	cursor = copy;
	while (!err && (one = strsep(&cursor, ", \t\n")))
		if (*one)
			err = add_one(one);
	kfree(copy);
	return err;
}

void sim_knobs_free(void)
{
	struct sim_rule *r, *next;

	list_for_each_entry_safe(r, next, &rules, node) {
		list_del(&r->node);
		kfree(r);
	}
}

void sim_knobs_show(struct seq_file *m)
{
	struct sim_rule *r;

	spin_lock_irq(&rules_lock);
	list_for_each_entry(r, &rules, node)
		seq_printf(m, "%s/%s=%s\n", r->who, r->knob, r->value);
	spin_unlock_irq(&rules_lock);
}
