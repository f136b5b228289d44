# mutants.awk: replaces texts of the tree, for mutants.sh, which says what a mutant is:
#     awk -v list=FILE [-v keep=DIR] -f mutants.awk MUTANT...
# The texts are looked for in the files that `list` names. With `keep` the files that a
# mutant changes are written, after a copy of each in DIR; without it each mutant is only
# tried. What is wrong with a mutant is printed, and the exit status is 1.
BEGIN {
	while ((getline name <list) > 0)
		files[++number] = name
	# No text has this byte, so that one record is a whole file.
	RS = "\001"
	for (i = 1; i <= number; i++)
		getline text[i] <files[i]
	RS = "\n"
	for (i = 1; i < ARGC; i++)
		mutate(ARGV[i])
	exit failed
}

function mutate(mutant,    line, mark, breaks, fails, texts, i) {
	split("", before)
	old = new = marks = ""
	while ((getline line <mutant) > 0) {
		mark = substr(line, 1, 1)
		if (line ~ /^breaks: ./)
			breaks = 1
		else if (line ~ /^fails: (vm|boot|older|tree|lib) [^ ]+$/)
			fails = 1
		else if (mark == "-" && marks !~ /\+/)
			old = old (marks == "" ? "" : "\n") substr(line, 2)
		else if (mark == "+" && marks ~ /-/)
			new = new (marks ~ /\+/ ? "\n" : "") substr(line, 2)
		else if (line == "")
			texts += replace(mutant)
		else
			wrong(mutant, "this line is not a part of a mutant: " line)
		marks = marks (mark ~ /[-+]/ ? mark : "")
	}
	texts += replace(mutant)
	close(mutant)
	if (!breaks || !fails || !texts)
		wrong(mutant, "it does not say what it breaks, a test that fails, or what is replaced")
	for (i in before) {
		if (keep != "" && !failed) {
			system("cp -P --parents \"" files[i] "\" \"" keep "\"")
			printf "%s", text[i] >files[i]
			close(files[i])
		}
		text[i] = before[i]
	}
}

# Replaces `old` by `new`; the number of texts that were replaced.
function replace(mutant,    i, from, at, times, where, begin, head, tail) {
	if (marks == "")
		return 0
	for (i = 1; i <= number; i++) {
		for (from = 0; at = index(from ? substr(text[i], from + 1) : text[i], old); from += at) {
			where = i
			begin = from + at
			times++
		}
	}
	if (times == 1) {
		if (!(where in before))
			before[where] = text[where]
		head = substr(text[where], 1, begin - 1)
		tail = substr(text[where], begin + length(old))
		if (marks !~ /\+/) {
			sub(/[^\n]*$/, "", head)
			sub(/^[^\n]*\n/, "", tail)
		}
		text[where] = head new tail
	} else
		wrong(mutant, "this text is in the tree " times + 0 " times, not once:\n-" old)
	old = new = marks = ""
	return 1
}

function wrong(mutant, why) {
	gsub(/\n/, "\n    ", why)
	print mutant ": " why
	failed = 1
}
