//! `plan check`: every guard of a plan, and everything in it derived again from the cache as it is now.

use anyhow::Result;
use hypseq_cache::Home;
use hypseq_plan::{Consumer, Plan};

use crate::cli::{Global, Memory, PlanFile};
use crate::commands::plan_apply::{home_of, state_root};
use crate::commands::sql;
use crate::drifting::compare;
use crate::exit::ExitStatus;
use crate::plan_verdict::PlanVerdict;
use crate::printer::Printer;
use crate::replan::{Again, Replanner};
use crate::select::{self, quote};
use crate::sentence::count;
use crate::world::CacheWorld;

pub fn run(global: &Global, args: &PlanFile, printer: &Printer) -> Result<ExitStatus> {
    let plan = Plan::read(&args.file)?;
    let home = home_of(global, "plan check")?;
    let world = CacheWorld::new(&home);
    let check = Consumer::new(state_root(&home)?, &world).check(&plan)?;
    let mut answer = PlanVerdict::of_check(&plan, &check);
    tokio::runtime::Runtime::new()?.block_on(derive_again(&home, &plan, &mut answer, printer))?;
    let status = conclude(&mut answer, &home, &quote(&args.file.to_string_lossy()));
    for reason in answer.all_reasons() {
        printer.error(&reason.text());
    }
    printer.report(&answer)?;
    Ok(status)
}

async fn derive_again(home: &Home, plan: &Plan, answer: &mut PlanVerdict, printer: &Printer) -> Result<()> {
    let (engine, _) = sql::open(std::slice::from_ref(home), &Memory::default(), printer).await?;
    let replanner = Replanner {
        home,
        engine: &engine,
        partitions: home.partitions().value,
        watermarks: home.watermarks().value,
        spool: home.spool().value,
        printer,
    };
    for (rewind, verdict) in plan.rewinds.iter().zip(&mut answer.rewinds) {
        let holds = verdict.verdict == "applicable";
        match replanner.replan(plan, rewind).await {
            Ok(Again::Rewind(again, same_cut)) => {
                let drift = compare(rewind, &again, same_cut)?;
                let matters = drift.iter().filter(|d| d.matters.is_some()).count() as u64;
                if holds && matters > 0 {
                    verdict.verdict = "drifted";
                    verdict.detail = format!(
                        "every guard holds, but {} from the plan in what it was decided on",
                        if matters == 1 { "one field differs".to_owned() } else { format!("{matters} fields differ") }
                    );
                } else if holds {
                    let fields = count(drift.len() as u64, "field");
                    verdict.detail = match drift.len() {
                        0 => "every guard holds, and nothing differs from the plan".to_owned(),
                        _ => format!("every guard holds; {fields} differ from the plan by ordinary progress only"),
                    };
                }
                verdict.drift = Some(drift);
            }
            Ok(Again::Nothing(why)) if holds => {
                verdict.verdict = "drifted";
                verdict.detail = format!("every guard holds, but nothing would be planned now: {why}");
            }
            Err(error) if holds => {
                verdict.verdict = "unknown";
                verdict.detail = format!("every guard holds, but the figures cannot be derived again: {error:#}");
            }
            Ok(Again::Nothing(why)) => printer.detail(&why),
            Err(error) => printer.detail(&format!("the figures cannot be derived again: {error:#}")),
        }
    }
    Ok(())
}

/// Settles the verdict over the whole plan, and says what to do.
fn conclude(answer: &mut PlanVerdict, home: &Home, file: &str) -> ExitStatus {
    let apply = select::command(home, &format!("plan apply {file} --watch"));
    let any = |wanted: &str| answer.rewinds.iter().any(|r| r.verdict == wanted);
    let (verdict, headline, next, status) = if answer.verdict == "stale" {
        let next = vec!["make a new plan with `hypseq plan rewind`".to_owned()];
        ("stale", "The plan cannot be applied any more: it is stale", next, ExitStatus::No)
    } else if any("unknown") {
        let next = vec![select::command(home, "status      shows what cannot be read")];
        ("unknown", "Whether the plan can be applied cannot be told", next, ExitStatus::CouldNotTell)
    } else if any("drifted") {
        let next = vec![
            "make a new plan with `hypseq plan rewind`, and decide again".to_owned(),
            format!("{apply}      would still go ahead: the guards hold"),
        ];
        ("drifted", "The plan has drifted: it can be applied, but is not what was decided on", next, ExitStatus::No)
    } else {
        let next = vec![apply];
        ("applicable", "The plan can be applied", next, ExitStatus::Yes)
    };
    answer.verdict = verdict;
    headline.clone_into(&mut answer.headline);
    answer.next = next;
    status
}
