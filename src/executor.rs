//! Threads of the caller.

/// Threads that somebody has, for [`Plan::run_with`](crate::Plan::run_with).
///
/// This crate starts none. With the feature `rayon`, a `rayon::ThreadPool` is one; for
/// another pool it is two functions:
///
/// ```
/// use relayout::{Executor, Plan, Shape};
///
/// /// Threads that are started each time: simple, and slow to start.
/// struct Scoped;
///
/// impl Executor for Scoped {
///     fn threads(&self) -> usize {
///         2
///     }
///
///     fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
///         std::thread::scope(|scope| {
///             for i in 0..count {
///                 scope.spawn(move || task(i));
///             }
///         });
///     }
/// }
///
/// let shape: Shape = "f32[1024,1024]{1,0:T(8,128)}".parse()?;
/// let (host, mut image) = (vec![1; 4 << 20], vec![0; 4 << 20]);
/// Plan::pack(&shape)?.run_with(&Scoped, &host, &mut image)?;
/// assert!(image.iter().all(|&byte| byte == 1));
/// # Ok::<(), relayout::Error>(())
/// ```
pub trait Executor {
    /// How many of its threads can work at the same time.
    fn threads(&self) -> usize;

    /// Calls `task` once with each number below `count`, on any threads, and returns
    /// when all calls have returned.
    ///
    /// Neighbouring numbers work on neighbouring memory. What an executor does not call
    /// is done by the calling thread afterwards.
    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync));
}

#[cfg(feature = "rayon")]
impl Executor for rayon::ThreadPool {
    fn threads(&self) -> usize {
        self.current_num_threads()
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        // The calling thread has nothing else to do.
        self.in_place_scope(|scope| {
            for i in 1..count {
                scope.spawn(move |_| task(i));
            }
            if count > 0 {
                task(0);
            }
        });
    }
}
