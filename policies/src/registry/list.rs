//! The macro behind the list of the policies.

/// Makes of one line a policy its module, the exports of its public items, its variant of
/// [`PolicySpec`](crate::PolicySpec) and its entry in [`POLICIES`](crate::POLICIES). What the
/// policy's file lacks is an error at the line.
macro_rules! policies {
    (
        online: $($module:ident::$policy:ident at $file:literal),* $(,)?;
        trained: $($trained_module:ident::$trained:ident at $trained_file:literal),* $(,)?;
        bounds: $($bound_module:ident::$bound:ident at $bound_file:literal),* $(,)?;
    ) => {
        $(#[path = $file] mod $module; pub use $module::*;)*
        $(#[path = $trained_file] mod $trained_module; pub use $trained_module::*;)*
        $(#[path = $bound_file] mod $bound_module; pub use $bound_module::*;)*

        /// A policy with its parameters.
        ///
        /// ```
        /// use hotset_policies::{Policy as _, PolicySpec, PoolShape};
        ///
        /// let spec: PolicySpec = "lru-k:k=3".parse()?;
        /// assert_eq!(spec.info().name, "lru-k");
        /// let pool = PoolShape::flat(64, 1024);
        /// assert!(spec.memory(&pool) < 1 << 20);
        /// assert!(spec.build(&pool).unwrap().is_empty());
        /// let error = "lrru".parse::<PolicySpec>().unwrap_err();
        /// assert_eq!(error.to_string(), "there is no policy 'lrru'; did you mean 'lru'?");
        /// # Ok::<(), hotset_policies::PolicyError>(())
        /// ```
        #[derive(Debug, Clone, PartialEq)]
        #[allow(missing_docs, reason = "each variant is described by its policy's INFO")]
        pub enum PolicySpec {
            $($policy(<$policy as Listed>::Config),)*
            $($trained,)*
            $($bound,)*
            /// A policy of the caller's own.
            Given(GivenPolicy),
            /// An online policy behind an admission.
            Admitted(Box<PolicySpec>, AdmissionSpec),
            /// An online policy with experts that are placed before the run.
            Placed(Box<PolicySpec>, PlacementSpec),
        }

        impl PolicySpec {
            /// What people are told of this policy.
            #[must_use]
            pub fn info(&self) -> &'static PolicyInfo {
                match self {
                    $(Self::$policy(_) => <$policy as Listed>::INFO,)*
                    $(Self::$trained => <$trained as Trained>::INFO,)*
                    $(Self::$bound => &$bound_module::INFO,)*
                    Self::Given(policy) => policy.info(),
                    Self::Admitted(policy, _) | Self::Placed(policy, _) => policy.info(),
                }
            }

            /// Hands the policy's type to `visitor`.
            pub fn visit<V: Visitor>(&self, visitor: V) -> V::Output {
                match self {
                    $(Self::$policy(config) =>
                        visitor.online(|pool| <$policy as Listed>::configured(pool, config)),)*
                    $(Self::$trained => visitor.trained(<$trained as Trained>::trained),)*
                    $(Self::$bound => visitor.offline(Bound::$bound),)*
                    Self::Given(policy) => visitor.online(|pool| policy.build(pool)),
                    Self::Admitted(policy, admission) =>
                        visitor.online(|pool| policy.build_admitted(*admission, pool)),
                    Self::Placed(policy, placement) => visitor
                        .trained(|pool, counts| placement.build(policy, pool, counts)),
                }
            }

            /// Bytes that the policy of such a pool allocates when it is built. A bound's grow with
            /// the trace beside, by less than 9 bytes an access.
            #[must_use]
            pub fn memory(&self, pool: &PoolShape) -> u64 {
                match self {
                    $(Self::$policy(config) => <$policy as Listed>::memory(pool, config),)*
                    $(Self::$trained => <$trained as Trained>::memory(pool),)*
                    $(Self::$bound => $bound_module::memory(pool),)*
                    Self::Given(policy) => policy.memory(pool),
                    Self::Admitted(policy, admission) =>
                        policy.memory(pool).saturating_add(admission.memory(pool)),
                    Self::Placed(policy, placement) =>
                        policy.memory(pool).saturating_add(placement.memory(pool)),
                }
            }

            pub(crate) fn read(name: &str, parameters: &str) -> Result<Self, PolicyError> {
                fn config<C: Config>(
                    info: &'static PolicyInfo,
                    parameters: &str,
                ) -> Result<C, PolicyError> {
                    read_config(parameters)
                        .map_err(|reason| PolicyError::Parameters { policy: info.name, reason })
                }
                $(if name == <$policy as Listed>::INFO.name {
                    return config(<$policy as Listed>::INFO, parameters).map(Self::$policy);
                })*
                $(if name == <$trained as Trained>::INFO.name {
                    let read = config::<NoConfig>(<$trained as Trained>::INFO, parameters);
                    return read.map(|_| Self::$trained);
                })*
                $(if name == $bound_module::INFO.name {
                    let read = config::<NoConfig>(&$bound_module::INFO, parameters);
                    return read.map(|_| Self::$bound);
                })*
                let near = nearest(name, POLICIES.iter().map(|info| info.name));
                Err(PolicyError::Unknown { name: name.to_owned(), near })
            }
        }

        /// All policies, in the order in which they are listed.
        pub static POLICIES: &[&PolicyInfo] = &[
            $(<$policy as Listed>::INFO,)*
            $(<$trained as Trained>::INFO,)*
            $(&$bound_module::INFO,)*
        ];
    };
}

pub(crate) use policies;
