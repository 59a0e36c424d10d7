//! `man`: one manual page of the whole program, or that of a command.

use anyhow::{Result, bail};
use clap::{Command, CommandFactory};

use crate::cli::{Cli, Man};
use crate::exit::ExitStatus;
use crate::printer::Printer;

/// What the example begins with, with which the help of every command ends.
const EXAMPLE: &str = "Example: ";

pub fn run(args: &Man, printer: &Printer) -> Result<ExitStatus> {
    let mut program = with_prose_in_descriptions(Cli::command().disable_help_subcommand(true));
    program.build();
    let text = if args.command.is_empty() { whole(&program)? } else { page(find(&program, &args.command)?)? };
    printer.text(&text)?;
    Ok(ExitStatus::Yes)
}

/// What the help says between the options and the example belongs to the description of a page.
fn with_prose_in_descriptions(command: Command) -> Command {
    let command = command.mut_subcommands(with_prose_in_descriptions);
    let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let (Some((prose, example)), Some(about)) = (after.rsplit_once(EXAMPLE), command.get_about()) else {
        return command;
    };
    let about = format!("{about}\n\n{prose}").trim_end().to_owned();
    command.long_about(about).after_help(format!("{EXAMPLE}{example}"))
}

fn find<'c>(program: &'c Command, path: &[String]) -> Result<&'c Command> {
    let mut command = program;
    for name in path {
        let Some(found) = command.find_subcommand(name) else {
            let names: Vec<&str> = command.get_subcommands().map(Command::get_name).collect();
            let hint = if names.is_empty() {
                "it has no commands of its own".to_owned()
            } else {
                format!("there are {}", names.join(", "))
            };
            bail!("`{}` has no command `{name}`\n  hint: {hint}", title(command));
        };
        command = found;
    }
    Ok(command)
}

/// The command with its parents, as it is typed.
fn title(command: &Command) -> &str {
    command.get_bin_name().unwrap_or_else(|| command.get_name())
}

/// The page of one command.
fn page(command: &Command) -> Result<String> {
    let mut page = Vec::new();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    tidy(page)
}

/// The page of the program, with a section for each command.
fn whole(program: &Command) -> Result<String> {
    let mut page = Vec::new();
    let man = clap_mangen::Man::new(program.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    man.render_extra_section(&mut page)?;
    let mut page = tidy(page)?;
    for command in leaves(program) {
        page.push_str(&section(command)?);
    }
    Ok(page)
}

/// The commands that can be run, in the order of the help.
fn leaves(command: &Command) -> Vec<&Command> {
    let below: Vec<&Command> = command.get_subcommands().flat_map(leaves).collect();
    if below.is_empty() { vec![command] } else { below }
}

/// A command as a section of a longer page. The options of every command stand there once.
fn section(command: &Command) -> Result<String> {
    let own = command.clone().mut_args(|arg| {
        let shared = arg.is_global_set() || arg.get_id() == "help";
        arg.hide(shared)
    });
    let mut section = Vec::new();
    let man = clap_mangen::Man::new(own.clone());
    man.render_description_section(&mut section)?;
    man.render_synopsis_section(&mut section)?;
    if own.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut section)?;
    }
    man.render_extra_section(&mut section)?;
    let lines = tidy(section)?.replace(".SH ", ".SS ");
    let text: Vec<&str> = lines.lines().filter(|line| *line != ".SS DESCRIPTION" && !is_preamble(line)).collect();
    Ok(format!(".SH \"{}\"\n{}\n", title(command).to_uppercase(), text.join("\n")))
}

/// What clap calls extra is the example, whose lines stay as they are; the preamble is needed once.
fn tidy(page: Vec<u8>) -> Result<String> {
    let page = String::from_utf8(page)?;
    let (preamble, text): (Vec<&str>, Vec<&str>) = page.lines().partition(|line| is_preamble(line));
    let mut lines: Vec<&str> = preamble.into_iter().take(2).collect();
    let mut in_example = false;
    for line in text {
        if in_example && line.starts_with(".SH ") {
            lines.push(".fi");
            in_example = false;
        }
        if let Some(example) = line.strip_prefix(EXAMPLE) {
            lines.extend([".nf", example]);
            in_example = true;
        } else if line == ".SH EXTRA" {
            lines.push(".SH EXAMPLES");
        } else {
            lines.push(if in_example { line.strip_prefix("       ").unwrap_or(line) } else { line });
        }
    }
    lines.extend(in_example.then_some(".fi"));
    Ok(lines.join("\n") + "\n")
}

/// How the pages choose a straight apostrophe.
fn is_preamble(line: &str) -> bool {
    line.starts_with(".ie ") || line.starts_with(".el ")
}
