# Packages and the source archive, all of the commit that is checked out; included by the
# Makefile. In an unpacked source archive there is no git: COMMIT has the commit.
version := $(shell sed -n 's/^version = "\(.*\)"$$/\1/p' Cargo.toml | head -n 1)
packages ?= $(abspath $(target))/packages
# Where a package is built; its path is in none of the results.
workshop ?= $(packages)/build
archive := $(packages)/ibprov-$(version).tar.xz
package_needs := build-essential cpio debhelper debugedit dpkg-dev elfutils fakeroot go-md2man libudev-dev pkg-config rpm xz-utils
package_test_needs := devscripts lintian mmdebstrap rpmlint

# Other architectures whose packages a release has, and the suite in which they are built.
foreign ?= $(filter-out $(shell dpkg --print-architecture),arm64)
foreign_suite ?= forky

# Who builds a package maintains it: by default who made the commit. HOMEPAGE=https://..., where
# its sources are: Homepage and Vcs of the packages, which have none otherwise.
MAINTAINER := $(or $(MAINTAINER),$(shell git log -1 --format='%an <%ae>' 2>/dev/null))
HOMEPAGE ?=
export MAINTAINER HOMEPAGE

.PHONY: check dist deb rpm foreign dist-release install-licences test-packages test-packages-clean

# The tests that a package's build runs, as a user who is not root, without a network. Left to
# the other lanes are those that ask for root, /sys, a terminal, or the xz of Debian 12.
elsewhere := host::attribute::tests::an_attribute_is_not host::firmware_tool::tests::it_has_no_input \
	host::link_events:: host::links:: host::lock::tests::nobody_but_root host::lock::tests::what_is_no_lock \
	host::netlink::tests::the_kernel_answers host::process::tests::nobody_who_started host::root::tests::no_device_node \
	host::state::tests::a_directory_gets host::udev::tests:: host::udev_record::tests:: \
	dgx:: stacks::tests::networkd_takes_an_interface_by_an_alternative_name archives::programs_that_expand \
	status::many_netdevs terminal::
check:
	$(CARGO) test --locked --no-fail-fast --lib --bins --test house $(addprefix --test ,$(tree_tests)) \
		-- $(addprefix --skip ,$(elsewhere))

dist:
	@command -v xz >/dev/null || sh tests/vm/image/need.sh xz-utils
	@sh packaging/dist.sh $(version) $(packages)

deb: dist
	@sh tests/vm/image/need.sh $(package_needs)
	@sh packaging/deb.sh $(archive) $(version) $(packages) $(workshop)

rpm: dist
	@sh tests/vm/image/need.sh $(package_needs)
	@sh packaging/rpm.sh $(archive) $(version) $(packages) $(workshop)

foreign: dist
	@sh tests/vm/image/need.sh $(package_needs)
	@for arch in $(foreign); do \
		sh packaging/cross.sh $(foreign_suite) $(archive) $(version) $(packages)/$$arch $(workshop)-$$arch $$arch || exit 1; \
	done

# All files of a release, in one folder: what is signed, tagged and published.
release_files ?= $(packages)/release
dist-release: deb rpm foreign
	@sh packaging/release.sh $(version) $(commit) $(packages) $(release_files) $(foreign)

# What a package says of the crates that are linked into the program: a bill of materials,
# and their licences where the sources are at hand (in the source archive).
install-licences:
	install -d $(DESTDIR)$(PREFIX)/share/doc/ibprov
	CARGO=$(CARGO) sh packaging/sbom.sh $(version) "$(commit)" >$(DESTDIR)$(PREFIX)/share/doc/ibprov/ibprov.cdx.json
	$(if $(wildcard vendor),CARGO=$(CARGO) sh packaging/licences.sh >$(DESTDIR)$(PREFIX)/share/doc/ibprov/licences-of-crates.txt)

test-packages: deps
	@sh tests/vm/image/need.sh $(package_needs) $(package_test_needs)
	@sh tests/lane.sh packages sh tests/packages/test.sh $(version) $(foreign_suite) $(foreign)

# The source package as a distribution builds it.
test-packages-clean: deb
	@sh tests/lane.sh packages-clean sh tests/packages/clean.sh $(foreign_suite) $(packages)/ibprov_$(version)-*.dsc $(packages)/clean
