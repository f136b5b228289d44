//! Colours and type.

/// A class for each rung, lowest first.
pub(super) const RUNG_CLASSES: [&str; 8] = ["r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"];

/// Light on purpose, whatever the browser's theme: it ends up in tickets and mails.
pub(super) const STYLE: &str = "<style>
text{font-family:system-ui,'DejaVu Sans',Verdana,Arial,sans-serif;font-size:13px;fill:#222}
.paper{fill:#fff}
.title{font-size:20px;font-weight:bold}
.head{rx:5}
.head.bad{fill:#b71c1c}.head.good{fill:#2e7d32}
.headline{font-size:19px;font-weight:bold;fill:#fff}
.tick{font-size:12px;fill:#555}
.grid{stroke:#e4e4e4}
.rule{stroke:#bbb}
.section{font-size:12px;font-weight:bold;fill:#666;letter-spacing:.04em}
.small{font-size:12px;fill:#444}
.tiny{font-size:10px}
.red{fill:#b71c1c;font-weight:bold}
.green{fill:#2e7d32}
.band{fill:#f44336;fill-opacity:.13}
.asked{stroke:#b71c1c;stroke-width:1.5;stroke-dasharray:5 4}
.cut{fill:#fff;fill-opacity:.92}
.cutline{stroke:#999;stroke-dasharray:3 3}
.cuttext{font-size:12px;fill:#b06000;font-weight:bold}
.unit{fill:#9e9e9e}.unit.good{fill:#81b987}.unit.bad{fill:#d9534f}
.never{stroke:#b71c1c;stroke-dasharray:2 5}
.dots{stroke:#bbb;stroke-dasharray:1 4}
.module{fill:#6a3d9a}
.note{fill:#b06000}
.mark.red{fill:#b71c1c;stroke:#fff}.mark.green{fill:#2e7d32;stroke:#fff}
.setup{fill:#2e7d32;stroke:#fff}.declined{fill:#b06000;stroke:#fff}
.r1{fill:#dce9f5}.r2{fill:#bfd8ec}.r3{fill:#94c1e0}.r4{fill:#5fa2d0}
.r5{fill:#3680bd}.r6{fill:#1c619f}.r7{fill:#0d4580}.r8{fill:#082b57}
.gap.missing{fill:#f44336;fill-opacity:.45;stroke:#b71c1c}
.gap.down{fill:#ffcc80;stroke:#b06000}
.gaptext{font-weight:bold;fill:#8e0000}
.onlight{font-size:11px;fill:#123}.ondark{font-size:11px;fill:#fff}
</style>";
