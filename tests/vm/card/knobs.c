// SPDX-License-Identifier: GPL-2.0-only
/*
 * Knobs: a list of rules WHO/KNOB=VALUE, given on the module's (or kernel's)
 * command line or written to debugfs, looked up at the moment of use.  So a
 * rule can speak of a VF that is not enabled yet, and changes at run time.
 *
 * WHO is a PCI address, "*", "pf", "vf", or PCI-ADDRESS+vf for all VFs of
 * that PF.  KNOB may be one that bears a command: slow.INIT_HCA.
 */
#include <linux/list.h>
#include <linux/module.h>
#include <linux/slab.h>
#include "card.h"

#define KNOB_LEN 48

struct rule {
	struct list_head node;
	char who[24];
	char knob[KNOB_LEN];
	char value[VALUE_LEN];
	u32 spent;			/* of fail.: how often it did */
};

static LIST_HEAD(rules);
static DEFINE_SPINLOCK(rules_lock);
unsigned long card_knobs_version = 1;

/* A misspelt knob would make a test pass for the wrong reason. */
static const char * const known[] = {
	"active_delay_ms", "board_id", "boot_pages", "cmd_timeout_ms",
	"enhanced", "fw_ver", "fw_wait_ms", "gone", "guid_write", "init_pages", "latch",
	"link", "link_delay_ms", "link_type", "node_guid", "nv", "nv_current", "nv_load",
	"nv_ms", "nv_stuck", "pcie_speed", "pcie_width",
	"pkeys", "policy_write", "port_guid", "reclaim_vfs_ms", "reset_ms", "rfr",
	"serial_init_ms", "silent", "slow", "sm", "sm_delay_ms", "speed",
	"syndrome", "totalvfs", "vf_pages", "vpd", "vpd_ms", "width",
};
static const char * const commands[] = { "slow.", "drop.", "fail." };

static bool who_fits(const char *who, struct card_fn *fn)
{
	size_t n = strlen(who);

	if (!strcmp(who, "*"))
		return true;
	if (!strcmp(who, "pf"))
		return !fn->is_vf;
	if (!strcmp(who, "vf"))
		return fn->is_vf;
	if (n > 3 && !strcmp(who + n - 3, "+vf"))
		return fn->is_vf && strlen(fn->pf->name) == n - 3 &&
		       !strncmp(who, fn->pf->name, n - 3);
	return !strcmp(who, fn->name);
}

static struct rule *lookup(struct card_fn *fn, const char *knob)
{
	struct rule *r;

	list_for_each_entry_reverse(r, &rules, node)
		if (!strcmp(r->knob, knob) && who_fits(r->who, fn))
			return r;
	return NULL;
}

bool knob_text(struct card_fn *fn, const char *knob, char *value)
{
	struct rule *r;

	spin_lock(&rules_lock);
	r = lookup(fn, knob);
	if (r)
		strscpy(value, r->value, VALUE_LEN);
	spin_unlock(&rules_lock);
	return r;
}

/* Plain numbers as in C, and GUIDs as aa:bb:...; checked when added. */
static int parse_number(const char *text, u64 *out)
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

u64 knob_number(struct card_fn *fn, const char *knob, u64 fallback)
{
	char value[VALUE_LEN];
	u64 n;

	if (!knob_text(fn, knob, value) || parse_number(value, &n))
		return fallback;
	return n;
}

/* NTH[:STATUS[:TIMES]]: NTH counts from the probe, 0 is every one. */
static int parse_failure(const char *value, unsigned int *nth,
			 unsigned int *status, unsigned int *times)
{
	*status = MLX5_CMD_STAT_INT_ERR;
	*times = 0;
	return sscanf(value, "%u:%i:%u", nth, (int *)status, times) >= 1 &&
	       *status && *status < 256 ? 0 : -EINVAL;
}

bool knob_fails(struct card_fn *fn, const char *opcode, u32 nth, u8 *status)
{
	unsigned int want, code, times;
	char knob[KNOB_LEN];
	bool fails = false;
	struct rule *r;

	snprintf(knob, sizeof(knob), "fail.%s", opcode);
	spin_lock(&rules_lock);
	r = lookup(fn, knob);
	if (r && !parse_failure(r->value, &want, &code, &times) &&
	    (!want || want == nth) && (!times || r->spent < times)) {
		r->spent++;
		*status = code;
		fails = true;
	}
	spin_unlock(&rules_lock);
	return fails;
}

void knobs_refresh(struct card_fn *fn)
{
	unsigned long version = READ_ONCE(card_knobs_version);
	char value[VALUE_LEN];

	if (fn->knobs_seen == version)
		return;
	fn->knobs_seen = version;
	fn->k_fw_wait_ms = knob_number(fn, "fw_wait_ms", 0);
	fn->k_link_delay_ms = knob_number(fn, "link_delay_ms", 0);
	fn->k_active_delay_ms = knob_number(fn, "active_delay_ms", 0);
	fn->k_sm_delay_ms = knob_number(fn, "sm_delay_ms", 0);
	fn->k_switch_sm = knob_text(fn, "sm", value) && !strcmp(value, "switch");
	fn->k_real_sm = fn->k_switch_sm ||
			(knob_text(fn, "sm", value) && !strcmp(value, "real"));
	fn->k_sm = fn->k_real_sm || knob_number(fn, "sm", 1);
	fn->k_silent = knob_number(fn, "silent", 0);
	fn->k_gone = knob_number(fn, "gone", 0);
	fn->k_syndrome = knob_number(fn, "syndrome", 0);
	fn->k_link = LINK_ACTIVE;
	if (knob_text(fn, "link", value))
		fn->k_link = !strcmp(value, "down") ? LINK_DOWN :
			     !strcmp(value, "init") ? LINK_INIT : LINK_ACTIVE;
	bus_knobs(fn);
}

static bool one_of(const char *value, const char *list)
{
	size_t n = strlen(value);
	const char *at = n ? strstr(list, value) : NULL;

	return at && (at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ');
}

/* none, broken, or fields KEYWORD:TEXT with a plus between them. */
static bool product_data_fits(const char *value)
{
	if (one_of(value, "none broken"))
		return true;
	do {
		const char *end = strchrnul(value, '+');

		if (end - value < 4 || value[2] != ':')
			return false;
		value = *end ? end + 1 : NULL;
	} while (value);
	return true;
}

static bool value_fits(const char *knob, const char *value)
{
	unsigned int nth, status, times;
	u32 scratch[4][4];
	u64 number;

	if (!strcmp(knob, "board_id") || !strcmp(knob, "fw_ver") ||
	    !strcmp(knob, "pkeys"))
		return *value;
	if (!strcmp(knob, "vpd"))
		return product_data_fits(value);
	if (!strcmp(knob, "nv"))
		return nv_parse(value, scratch);
	if (!strcmp(knob, "nv_load"))
		return one_of(value, "reboot power");
	if (!strcmp(knob, "link"))
		return one_of(value, "down init active");
	if (!strcmp(knob, "link_type"))
		return one_of(value, "ib eth");
	if (!strcmp(knob, "sm"))
		return one_of(value, "0 1 real switch");
	if (!strcmp(knob, "latch"))
		return one_of(value, "fresh stale");
	if (!strcmp(knob, "speed"))
		return one_of(value, "sdr ddr qdr fdr edr hdr ndr");
	if (!strcmp(knob, "guid_write") || !strcmp(knob, "policy_write"))
		return one_of(value, "ok drop") || !parse_number(value, &number);
	if (strstarts(knob, "drop."))
		return one_of(value, "0 1 late");
	if (strstarts(knob, "fail."))
		return !parse_failure(value, &nth, &status, &times);
	return !parse_number(value, &number);
}

static bool knob_known(const char *knob)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(commands); i++) {
		u16 op;

		if (!strstarts(knob, commands[i]))
			continue;
		for (op = 0x100; op < MLX5_CMD_OP_MAX; op++)
			if (!strcmp(opcode_name(op), knob + strlen(commands[i])))
				return true;
	}
	if (strstarts(knob, "nv_status."))
		return nv_register(knob + strlen("nv_status."));
	return match_string(known, ARRAY_SIZE(known), knob) >= 0;
}

static int add_one(char *text)
{
	char *who = strsep(&text, "/");
	char *knob = text ? strsep(&text, "=") : NULL;
	struct rule *r, *old;

	if (!text || !knob_known(knob) || strlen(who) >= sizeof(r->who) ||
	    strlen(text) >= VALUE_LEN || !value_fits(knob, text)) {
		pr_err(CARD_NAME ": knob not understood: %s/%s=%s\n", who,
		       knob ?: "", text ?: "");
		return -EINVAL;
	}
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	strscpy(r->who, who, sizeof(r->who));
	strscpy(r->knob, knob, sizeof(r->knob));
	strscpy(r->value, text, sizeof(r->value));

	spin_lock(&rules_lock);
	list_for_each_entry(old, &rules, node) {
		if (!strcmp(old->who, r->who) && !strcmp(old->knob, r->knob)) {
			list_del(&old->node);
			kfree(old);
			break;
		}
	}
	list_add_tail(&r->node, &rules);
	WRITE_ONCE(card_knobs_version, card_knobs_version + 1);
	spin_unlock(&rules_lock);
	return 0;
}

/* Rules separated by commas, blanks or newlines. */
int knobs_add(const char *text)
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

void knobs_free(void)
{
	struct rule *r, *next;

	list_for_each_entry_safe(r, next, &rules, node) {
		list_del(&r->node);
		kfree(r);
	}
}

void knobs_show(struct seq_file *m)
{
	struct rule *r;

	spin_lock(&rules_lock);
	list_for_each_entry(r, &rules, node)
		seq_printf(m, "%s/%s=%s\n", r->who, r->knob, r->value);
	spin_unlock(&rules_lock);
}

static int set_param(const char *text, const struct kernel_param *kp)
{
	return knobs_add(text);
}

static const struct kernel_param_ops set_ops = { .set = set_param };
module_param_cb(set, &set_ops, NULL, 0200);
MODULE_PARM_DESC(set, "WHO/KNOB=VALUE,...");
