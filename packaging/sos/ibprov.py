# What ibprov shows of this node, for sos report. Text alone: `sos clean` removes other files.
# Copy it to the directory of sos' plugins (sos/report/plugins below Python's packages).

from sos.report.plugins import Plugin, IndependentPlugin, DebianPlugin, UbuntuPlugin


# On Debian and Ubuntu sos 4.0 takes no plugin for being independent.
class Ibprov(Plugin, IndependentPlugin, DebianPlugin, UbuntuPlugin):

    short_desc = 'InfiniBand provisioning at boot'

    plugin_name = 'ibprov'
    profiles = ('hardware', 'network', 'boot')
    packages = ('ibprov',)
    commands = ('ibprov',)

    def setup(self):
        self.add_copy_spec(['/etc/ibprov', '/run/ibprov/*.json', '/run/ibprov/*/*.json'])
        self.add_cmd_output([
            'ibprov status -v',
            'ibprov status --format json',
            'ibprov plan',
            'ibprov check',
        ])
