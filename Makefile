# make test: every lane, on a fresh machine too (as root, Debian or Ubuntu).
# make demo: two boots side by side, without and with ibprov.
# make deb, make rpm, make dist, make dist-release: packages, the source archive, a whole release
# (packaging/packages.mk).
PREFIX  ?= /usr
DESTDIR ?=
CARGO   ?= cargo
target  := $(or $(CARGO_TARGET_DIR),target)

# No path of the machine that builds is in the program, and two checkouts build the same
# bytes. What a package keeps of debug symbols, it takes from an unstripped build:
# CARGO_PROFILE_RELEASE_STRIP=none CARGO_PROFILE_RELEASE_DEBUG=line-tables-only.
sysroot := $(shell rustc --print sysroot 2>/dev/null)
nowhere := $(or $(CARGO_HOME),$(HOME)/.cargo)=/cargo $(sysroot)=/rust \
	$(CURDIR)=/ibprov $(abspath $(target))=/target
flags   := $(RUSTFLAGS) $(addprefix --remap-path-prefix=,$(nowhere))

# For a machine of another architecture: CROSS=aarch64-linux-gnu, with that compiler, its
# libudev and Rust's standard library for it.
CROSS   ?=
ifneq ($(CROSS),)
triple  := $(subst -linux-,-unknown-linux-,$(CROSS))
cross   := CARGO_BUILD_TARGET=$(triple) PKG_CONFIG=$(CROSS)-pkg-config \
	CARGO_TARGET_$(shell echo $(triple) | tr a-z- A-Z_)_LINKER=$(CROSS)-gcc
endif
binary  := $(target)/$(if $(CROSS),$(triple)/)release/ibprov

# Packages to build and lint; the test lanes install theirs themselves
# (tests/vm/image/packages.txt).
build_needs := gcc go-md2man libc6-dev libudev-dev pkg-config
man_pages := $(wildcard docs/*.5.md docs/*.7.md docs/*.8.md)

# Lanes that boot machines, and the one that reads the release, are test targets of
# these names; house reads the sources and is part of the unit lane; every other test
# target needs nothing but the debug build.
named_tests := vm boot demo bench picture prometheus release
tree_tests := $(filter-out house $(named_tests),$(patsubst tests/%.rs,%,$(wildcard tests/*.rs)) $(patsubst tests/%/main.rs,%,$(wildcard tests/*/main.rs)))

.PHONY: all release install install-man deps lint test test-unit test-tree test-release test-boot test-vm test-picture test-prometheus test-health test-sos test-ansible test-opensm test-walk test-field-trial test-initramfs test-older test-newer test-newest test-all test-properties test-agreement test-vm-long test-mutants fuzz bench demo house

all: release

# The commit that --version tells: a source archive has it in a file; nothing where there
# is neither that nor git.
commit := $(or $(IBPROV_COMMIT),$(shell cat COMMIT 2>/dev/null || git rev-parse --short=12 HEAD 2>/dev/null))
# Prints the completions: where $(binary) is for another machine, one that runs here.
native := $(if $(CROSS),$(target)/debug/ibprov,$(binary))

release:
	$(cross) IBPROV_COMMIT="$(commit)" RUSTFLAGS="$(flags)" $(CARGO) build --quiet --release --locked
	$(if $(CROSS),$(CARGO) build --quiet --locked)

# Installs what `make release` built, and the man pages if they can be made.
# systemd and udev look below /usr and /usr/local; the units name the binary
# where it is put: where sbin is a link to bin (Fedora 42), packages want SBINDIR=/usr/bin.
SBINDIR ?= $(PREFIX)/sbin
install:
	install -d $(DESTDIR)$(SBINDIR) $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/lib/udev/rules.d $(DESTDIR)$(PREFIX)/lib/ibprov
	install -m 755 $(binary) $(DESTDIR)$(SBINDIR)/ibprov
	for unit in $(notdir $(wildcard units/*)); do \
		sed 's,/usr/sbin/ibprov,$(SBINDIR)/ibprov,' units/$$unit >$(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit && \
		chmod 644 $(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit || exit 1; \
	done
	install -m 644 $(wildcard udev-rules/*.rules) $(DESTDIR)$(PREFIX)/lib/udev/rules.d/
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(native) completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/ibprov
	$(native) completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_ibprov
	$(native) completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/ibprov.fish
	install -d $(DESTDIR)$(PREFIX)/share/doc/ibprov/examples
	install -m 755 docs/examples/libvirt-qemu-hook $(DESTDIR)$(PREFIX)/share/doc/ibprov/examples/
	install -m 644 $(wildcard docs/examples/*.toml docs/examples/*.conf) $(DESTDIR)$(PREFIX)/share/doc/ibprov/examples/
	install -d $(DESTDIR)$(PREFIX)/share/doc/ibprov/examples/health
	install -m 644 $(addprefix docs/examples/health/,npd.json node-readiness-rule.yaml ibprov.nhc) $(DESTDIR)$(PREFIX)/share/doc/ibprov/examples/health/
	install -m 755 docs/examples/health/slurm-health-check $(DESTDIR)$(PREFIX)/share/doc/ibprov/examples/health/
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/doc/ibprov/,prometheus ansible sos)
	install -m 644 packaging/prometheus/ibprov* $(DESTDIR)$(PREFIX)/share/doc/ibprov/prometheus/
	install -m 644 packaging/sos/ibprov.py $(DESTDIR)$(PREFIX)/share/doc/ibprov/sos/
	install -m 755 packaging/field-trial.sh $(DESTDIR)$(PREFIX)/share/doc/ibprov/
	install -d $(DESTDIR)$(PREFIX)/share/doc/ibprov/diagnoses
	install -m 644 $(addprefix docs/,diagnoses.md faq.md field-trial.md real-machines.md) $(DESTDIR)$(PREFIX)/share/doc/ibprov/
	install -m 644 $(wildcard docs/diagnoses/*.md) $(DESTDIR)$(PREFIX)/share/doc/ibprov/diagnoses/
	cp -R packaging/ansible/README.md packaging/ansible/site.yml packaging/ansible/roles $(DESTDIR)$(PREFIX)/share/doc/ibprov/ansible/
	install -m 644 packaging/ibprov.toml $(DESTDIR)$(PREFIX)/lib/ibprov/
	install -m 755 packaging/host $(DESTDIR)$(PREFIX)/lib/ibprov/
	install -d $(DESTDIR)$(PREFIX)/lib/dracut/modules.d/50ibprov $(DESTDIR)$(PREFIX)/share/initramfs-tools/hooks
	install -m 755 packaging/dracut/50ibprov/module-setup.sh $(DESTDIR)$(PREFIX)/lib/dracut/modules.d/50ibprov/
	install -m 755 packaging/initramfs-tools/ibprov $(DESTDIR)$(PREFIX)/share/initramfs-tools/hooks/
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system-preset $(DESTDIR)$(PREFIX)/lib/systemd/catalog
	install -d "$(DESTDIR)$(PREFIX)/lib/systemd/system/opensm@.service.d"
	install -m 644 packaging/opensm@.conf "$(DESTDIR)$(PREFIX)/lib/systemd/system/opensm@.service.d/50-ibprov.conf"
	install -m 644 packaging/90-ibprov.preset $(DESTDIR)$(PREFIX)/lib/systemd/system-preset/
	install -m 644 packaging/ibprov.catalog $(DESTDIR)$(PREFIX)/lib/systemd/catalog/
	install -d $(DESTDIR)$(PREFIX)/share/ibprov/schema
	install -m 644 docs/reports.schema.json $(DESTDIR)$(PREFIX)/share/ibprov/schema/reports.json
	install -m 644 docs/ibprov.schema.json $(DESTDIR)$(PREFIX)/share/ibprov/schema/ibprov.toml.json
	@if command -v go-md2man >/dev/null; then $(MAKE) --no-print-directory install-man; else echo "go-md2man is not installed (make deps): man pages left out"; fi

# The title line `% NAME(SECTION) SOURCE` is known to newer go-md2man only; for older ones it is
# put into man's form afterwards, as are their font C, which newer groff does not have, and the
# line by which man knows that there are tables.
install-man:
	@for page in $(man_pages); do \
		section=$${page%.md} && section=$${section##*.} && \
		dir=$(DESTDIR)$(PREFIX)/share/man/man$$section && made=$$dir/$$(basename $$page .md) && \
		install -d $$dir && go-md2man -in $$page -out $$made && \
		sed -i 's/^\.TH \([^ (]*\)(\([0-9]\)) \(.*\)$$/.TH "\1" "\2" "" "\3"/; s/\\fC//g' $$made && \
		{ ! grep -q '^\.TS' $$made || sed -i "1{/^'/!s/^/'\\\\\" t\n/}" $$made; } && \
		chmod 644 $$made || exit 1; \
	done

deps:
	@sh tests/vm/image/need.sh $(build_needs)
	@command -v $(CARGO) >/dev/null || { echo "make: no cargo: install Rust first (rustup)" >&2; exit 1; }

lint: deps
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	@# Those are not among "all" targets.
	$(CARGO) clippy --locked $(addprefix --test ,$(named_tests)) -- -D warnings
	@sh tests/mutants.sh --check
	@# A package of its own, whose lock file ours does not keep up to date.
	$(CARGO) metadata --quiet --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
	$(if $(shell command -v cargo-deny),$(CARGO) deny check bans licenses sources,@echo "cargo-deny is not installed: licences and sources not checked")

# A lane that fails does not keep the others from telling. The machines begin as soon as
# their program is built, whose linking keeps one processor busy, not two; the other lanes
# run beside that and beside the machines, which wait much of their time.
test: deps
	@failed=0; log=$(target)/test-machines.log; mkdir -p $(target); \
	{ $(MAKE) --no-print-directory release && \
	$(MAKE) --no-print-directory --keep-going test-release test-vm; } >$$log 2>&1 & machines=$$!; \
	$(MAKE) --no-print-directory --keep-going test-unit test-tree || failed=1; \
	$(MAKE) --no-print-directory test-boot || failed=1; \
	tail -n +1 -f --pid=$$machines $$log; \
	wait $$machines || failed=1; \
	exit $$failed

# Trees of hosts are many small files, which a disk makes slowly: they are made in memory where
# that is allowed to hold them, and programs among them to run.
shm := /dev/shm
in_memory = if [ "$$(df --output=avail $(shm) 2>/dev/null | tail -n 1)" -ge 4000000 ] 2>/dev/null && \
	! findmnt -no OPTIONS $(shm) | grep -q noexec; then export TMPDIR=$(shm); fi

test-unit: deps
	@$(in_memory); sh tests/lane.sh unit $(CARGO) test --locked --lib --bins --test house
test-tree: deps
	@sh tests/vm/image/need.sh bzip2 xz-utils zstd
	@$(in_memory); sh tests/lane.sh tree $(CARGO) test --locked --no-fail-fast $(addprefix --test ,$(tree_tests))
test-release: deps release
	@IBPROV_RELEASE=$(abspath $(binary)) sh tests/lane.sh release $(CARGO) test --locked --test release
test-boot: deps
	@sh tests/lane.sh boot $(CARGO) test --locked --test boot -- --test-threads=1
test-vm: deps
	@sh tests/lane.sh vm $(CARGO) test --locked --test vm -- --test-threads=64

# The boot pictures in a headless browser, a download of its own: in test-all only.
test-picture: deps
	@sh tests/vm/image/need.sh chromium-headless-shell fonts-dejavu-core
	@$(CARGO) test --quiet --locked --lib timeline::svg
	@sh tests/lane.sh picture $(CARGO) test --locked --test picture

# What node_exporter and promtool say of the metrics: large packages, in test-all only.
test-prometheus: deps
	@sh tests/vm/image/need.sh prometheus prometheus-node-exporter
	@sh tests/lane.sh prometheus $(CARGO) test --locked --test prometheus

# `ibprov health` under Slurm and as a plugin of Nagios: in test-all only.
test-health:
	@sh tests/vm/image/need.sh monitoring-plugins-basic munge slurm-client slurmctld slurmd
	@$(CARGO) build --quiet --locked
	@sh tests/lane.sh health sh tests/health.sh $(abspath $(target))/debug/ibprov

# sos with the plugin of packaging/sos, and check on its archive: in test-all only.
test-sos:
	@$(CARGO) build --quiet --locked
	@sh tests/lane.sh sos sh tests/sos.sh $(abspath $(target))/debug/ibprov

# What opensm makes of the files that `ibprov opensm check` judges, in a simulated fabric.
# Its package is unpacked, not installed: an installed one would serve the machine's ports.
test-opensm: deps
	@sh tests/tree/opensm/unpack.sh $(abspath $(target))/opensm
	@OPENSM_ROOT=$(abspath $(target))/opensm sh tests/lane.sh opensm $(CARGO) test --locked --test tree opensm -- --include-ignored

# The playbook with ansible-core against booted containers: see packaging/ansible. The package
# is the one that `make deb` makes of this commit.
test-ansible: deps deb
	@sh tests/vm/image/need.sh ansible-core dpkg-dev openssh-client systemd-container
	@sh tests/lane.sh ansible sh tests/ansible/test.sh $(packages)/ibprov_*.deb

# packaging/field-trial.sh from its refusals to its undo, with the package of this commit.
test-field-trial: deps deb
	@sh tests/vm/image/need.sh systemd-container
	@sh tests/lane.sh field-trial sh tests/field-trial.sh $(packages)/ibprov_*.deb

# README's commands, in their order, in a fresh root.
test-walk: deps
	@sh tests/lane.sh walk sh tests/walk.sh

# Images of an initramfs by both builders, and what check says of them.
test-initramfs: deps release
	@sh tests/lane.sh initramfs sh tests/initramfs.sh $(abspath $(binary))

# Campaigns of many boots or long waits, left out of `make test`. A lane that fails does not keep
# the others from telling. Fuzzing takes half an hour of one processor, as there are 15 targets.
test-all:
	@$(MAKE) --no-print-directory --keep-going test test-properties test-agreement \
		test-picture test-prometheus test-health test-sos test-ansible test-opensm test-walk \
		test-field-trial test-packages test-packages-clean test-vm-long test-initramfs \
		test-older test-newer test-newest fuzz FUZZ_SECONDS=130
test-properties: deps
	@$(in_memory); PROPTEST_CASES=5000 PROPTEST_MAX_GLOBAL_REJECTS=20000 sh tests/lane.sh properties $(CARGO) test --locked --lib
test-agreement: deps
	@$(in_memory); PROPTEST_CASES=2000 sh tests/lane.sh agreement $(CARGO) test --locked --test tree -- agreement ledger
# netplan of Debian 12 writes its files before any unit: it is for the newest release.
test-vm-long: deps
	@IBPROV_CAMPAIGN_VFS=31,63,127 sh tests/lane.sh vm-long $(CARGO) test --locked --test vm -- --test-threads=64 --ignored --skip netplan::

# Debian 11: kernel 5.10, systemd 247, and the program linked with that release's C
# library. mlx5 has no auxiliary devices there, and a link with many VFs is described only
# to a program that offers enough room.
older := bullseye
older_tests := card:: vf_use:: vf_reload:: vf_plan:: vf_netns:: \
	iface_ifupdown:: iface_daemons::networkd guests::
# Its drivers are reloaded too: VFs stay there then, and come again with their PF.
test-older: deps
	@built=$$(sh tests/vm/image/agent.sh $(older)) || exit 1; failed=0; \
	export IBPROV_RELEASE=$$built IBPROV_ROOT_SUITE=$(older) IBPROV_KERNEL_SUITE=$(older); \
	sh tests/lane.sh older $(CARGO) test --locked --test vm -- --test-threads=64 $(older_tests) || failed=1; \
	sh tests/lane.sh older-boot $(CARGO) test --locked --test boot -- --test-threads=1 reload:: || failed=1; \
	sh tests/lane.sh older-long $(CARGO) test --locked --test vm -- --ignored vf_many:: vf_untold:: campaigns::the_plan_survives_fifty_reloads_of_the_real_drivers || failed=1; \
	exit $$failed

# The mstconfig of Debian 13, 4.31, has another layout than that of Debian 12; its opensm is
# tried with both scenarios.
newer := trixie
test-newer: deps
	@IBPROV_ROOT_SUITE=$(newer) sh tests/lane.sh newer $(CARGO) test --locked --test vm -- --test-threads=64 firmware:: card_opensm::
	@IBPROV_ROOT_SUITE=$(newer) sh tests/lane.sh newer-long $(CARGO) test --locked --test vm -- --ignored card_opensm::two_

# Debian's next release: kernel and programs. The modules of the adapters are built in a
# root of that release.
newest := forky
newest_tests := again:: card:: early_drivers:: expected:: guests:: iface_daemons:: \
	iface_ifupdown:: vf_plan:: vf_reload::when_ vf_use::
# What that systemd no longer runs: start scripts and rc.local.
not_newest := openibd::a_restart_stops_nothing openibd::calls_of_the_script openibd::rc_links_call
newest_long := card_enhanced:: images:: migration:: netplan::
test-newest: deps
	@export IBPROV_ROOT_SUITE=$(newest) IBPROV_KERNEL_SUITE=$(newest); failed=0; \
	sh tests/lane.sh newest-boot $(CARGO) test --locked --test boot -- --test-threads=1 $(addprefix --skip ,$(not_newest)) || failed=1; \
	sh tests/lane.sh newest $(CARGO) test --locked --test vm -- --test-threads=64 $(newest_tests) || failed=1; \
	sh tests/lane.sh newest-long $(CARGO) test --locked --test vm -- --test-threads=64 --ignored $(newest_long) || failed=1; \
	exit $$failed

# Each parser of what others wrote, by libFuzzer (fuzz/run.sh): so many seconds each, or
# of FUZZ alone.
FUZZ_SECONDS ?= 120
fuzz: deps
	@sh tests/vm/image/need.sh g++
	@sh fuzz/run.sh $(FUZZ_SECONDS) $(FUZZ)

# The machine's image is made while the program is compiled.
demo: deps
	@sh tests/vm/image/build.sh vm base >/dev/null & \
	$(CARGO) test --quiet --locked --test demo; code=$$?; wait; exit $$code

# Figures against their limits; a limit that is exceeded is a failure, after all have been
# measured.
bench: deps release
	@failed=0; \
	$(CARGO) test --quiet --locked --test bench || failed=1; \
	IBPROV_RELEASE=$(abspath $(binary)) $(CARGO) test --quiet --locked --test fleet -- --nocapture || failed=1; \
	exit $$failed

# How large each room is, and what is written more than once.
house:
	@sh tests/figures.sh

# Each machine test is seen failing once: tests/mutants/*.
test-mutants: deps
	@sh tests/mutants.sh $(MUTANTS)

# make check, dist, deb, rpm, dist-release, test-packages, test-packages-clean.
include packaging/packages.mk
