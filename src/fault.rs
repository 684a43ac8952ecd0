//! What goes wrong, told to a person, and the exit codes that scripts read.

use std::process::ExitCode;

use hotset::conform::LogError;
use hotset::cost_models::{DiskError, FitError, ProfileError, UnknownLink, UnknownMachine};
use hotset::experiments::ExperimentError;
use hotset::planning::PlanError;
use hotset::planning::engine::UnknownEngine;
use hotset::planning::verify::ReportError;
use hotset::policies::PolicyError;
use hotset::reports::{DiffError, PlotError, RenderError, visible};
use hotset::sim::{LiveError, SimError};
use thiserror::Error;

use crate::flags::with_flags;
use crate::{interrupt, parse};

/// How a command that ran to its end turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Fine: exit code 0.
    Passed,
    /// A check failed: exit code 1.
    Failed,
}

/// Why a command did not run to its end: exit code 2, or 3 if it was interrupted.
#[derive(Debug, Error)]
pub enum Fault {
    /// A trace that cannot be read or written.
    #[error(transparent)]
    Trace(#[from] hotset::traces::Error),
    /// Settings that cannot be replayed.
    #[error("{}", simulation(.0))]
    Simulation(#[from] SimError),
    /// An experiment that cannot be run.
    #[error("{}", experiment(.0))]
    Experiment(#[from] ExperimentError),
    /// A plan that cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A policy's name or parameters.
    #[error("{}", policy(.0))]
    Policy(#[from] PolicyError),
    /// A link's name.
    #[error(transparent)]
    Link(#[from] UnknownLink),
    /// A disk's name or rate.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A machine's name.
    #[error(transparent)]
    Machine(#[from] UnknownMachine),
    /// Live points that cannot be checked.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// A live run that failed, or cannot begin here.
    #[cfg(feature = "cuda")]
    #[error("{}", gpu(.0))]
    Gpu(#[from] hotset::live::LiveError),
    /// Reports that cannot be read.
    #[error(transparent)]
    Reported(#[from] ReportError),
    /// An engine's name.
    #[error(transparent)]
    Engine(#[from] UnknownEngine),
    /// Measurements that cannot be fitted.
    #[error("{path}: {reason}")]
    Fit {
        /// The file.
        path: String,
        /// Why not.
        reason: FitError,
    },
    /// A link's profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// Results that cannot be compared.
    #[error(transparent)]
    Diff(#[from] DiffError),
    /// A picture that cannot be drawn.
    #[error(transparent)]
    Plot(#[from] PlotError),
    /// A result that cannot be rendered.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A file that cannot be read.
    #[error("cannot read {path}: {reason}")]
    Read {
        /// The file.
        path: String,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// An engine's log that cannot be compared.
    #[error("{path}: {reason}")]
    Log {
        /// The file.
        path: String,
        /// Which line and why.
        reason: LogError,
    },
    /// A policy's own log that cannot be made.
    #[error(transparent)]
    Record(#[from] LogError),
    /// A file that cannot be written.
    #[error("cannot write {path}: {reason}")]
    Write {
        /// The file.
        path: String,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// Ctrl-C, before the results were given.
    #[error("interrupted")]
    Interrupted,
    /// A flag's value.
    #[error("{0}")]
    Usage(String),
}

impl Fault {
    /// Tells the person, and gives the exit code.
    pub fn report(&self) -> ExitCode {
        if interrupt::requested() {
            interrupt::tell();
            return ExitCode::from(3);
        }
        eprintln!("error: {}", self.text());
        ExitCode::from(self.code())
    }

    /// 1 where a check failed on the way, else 2.
    fn code(&self) -> u8 {
        match self {
            #[cfg(feature = "cuda")]
            Self::Gpu(hotset::live::LiveError::Wrong { .. }) => 1,
            _ => 2,
        }
    }

    /// What a person is told.
    pub fn text(&self) -> String {
        visible(&with_flags(&self.to_string()))
    }
}

#[cfg(feature = "cuda")]
fn gpu(error: &hotset::live::LiveError) -> String {
    match error {
        hotset::live::LiveError::Sim(error) => simulation(error),
        other => other.to_string(),
    }
}

fn simulation(error: &SimError) -> String {
    match error {
        SimError::Policy(error) => policy(error),
        other => other.to_string(),
    }
}

fn experiment(error: &ExperimentError) -> String {
    match error {
        ExperimentError::Arm { text, .. } => {
            let (policy, prefetch) = text.split_once('/').unwrap_or((text, "none"));
            let known = policy.parse::<hotset::policies::PolicySpec>();
            let near = match known {
                Err(unknown @ PolicyError::Unknown { .. }) => {
                    return format!("arm '{text}': {}", self::policy(&unknown));
                }
                _ => parse::prefetch_suggestion(prefetch),
            };
            format!("{error}{near}")
        }
        ExperimentError::Sim(error) => simulation(error),
        ExperimentError::Policy(error) => policy(error),
        other => other.to_string(),
    }
}

fn policy(error: &PolicyError) -> String {
    match error {
        PolicyError::Unknown { near, .. } | PolicyError::UnknownAdmission { near, .. } => {
            let joint = if near.is_some() { "" } else { ";" };
            format!("{error}{joint} 'hotset policies' lists them all")
        }
        PolicyError::Parameters { .. } | PolicyError::TooLarge { .. } => error.to_string(),
    }
}
