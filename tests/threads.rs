//! Plans on several threads against one.

mod common;

use std::sync::Mutex;

use common::{Scoped, shape};
use relayout::{BitOrder, Executor, Host, Padding, Plan, PlanBuilder};
use relayout_testing::noise;

/// One that does what it should not: some twice, some never, some that are not there.
struct Careless;

impl Executor for Careless {
    fn threads(&self) -> usize {
        5
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        for i in [1, 1, count, usize::MAX, 3] {
            task(i);
        }
    }
}

/// One that takes note of what it is asked for.
struct Counting(Mutex<Vec<usize>>);

impl Executor for Counting {
    fn threads(&self) -> usize {
        4
    }

    fn run(&self, count: usize, task: &(dyn Fn(usize) + Sync)) {
        self.0.lock().unwrap().push(count);
        (0..count).rev().for_each(task);
    }
}

fn plans() -> Vec<Plan> {
    let mut plans = Vec::new();
    for text in [
        "f32[1200,900]{1,0:T(8,128)}",
        "bf16[2001,1100]{1,0:T(8,128)(2,1)}",
        "s8[2048,2200]{1,0:T(32,128)(4,1)}",
        "pred[3000,3000]{1,0:T(32,128)(32,1)E(1)}",
        "f32[1000,1100]{0,1:T(8,128)}",
        "s4[3999,3501]{1,0:T(8,128)(8,1)E(4)}",
        "f32[1200000]{0:T(1024)}",
        "f32[110,90,110]{1,2,0:T(8,128)}",
    ] {
        let shape = shape(text);
        for padding in [Padding::Zero, Padding::Keep] {
            plans.push(PlanBuilder::new().padding(padding).pack(&shape).unwrap());
        }
        plans.push(Plan::unpack(&shape).unwrap());
        if text.starts_with("s4") {
            let packed = Host::dense().packed(BitOrder::MostFirst);
            plans.push(PlanBuilder::new().host(packed).unpack(&shape).unwrap());
        }
    }
    plans
}

#[test]
fn threads_give_the_bytes_of_one() {
    for plan in plans() {
        let source = noise(plan.source_bytes(), 1);
        let before = noise(plan.destination_bytes(), 2);
        let mut expected = before.clone();
        plan.run(&source, &mut expected).unwrap();
        let check = |executor: &dyn Fn(&mut [u8])| {
            let mut destination = before.clone();
            executor(&mut destination);
            assert!(destination == expected, "{}", plan.explain());
        };
        for threads in [0, 1, 2, 3, 7, 2, 64] {
            check(&|d| plan.run_with(&Scoped(threads), &source, d).unwrap());
        }
        check(&|d| plan.run_with(&Careless, &source, d).unwrap());
        #[cfg(feature = "rayon")]
        {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            check(&|d| plan.run_with(&pool, &source, d).unwrap());
            check(&|d| pool.install(|| plan.run_with(&pool, &source, d).unwrap()));
        }

        let mut short = before[1..].to_vec();
        plan.run_with(&Scoped(2), &source, &mut short).unwrap_err();
        assert!(short == before[1..]);
        plan.run_with(&Scoped(2), &source[1..], &mut before.clone()).unwrap_err();
    }
}

#[test]
fn there_are_no_more_shares_than_threads_and_small_work_has_none() {
    let counting = Counting(Mutex::default());
    let run = |text: &str| {
        let plan = Plan::pack(&shape(text)).unwrap();
        let source = vec![1; plan.source_bytes() as usize];
        let mut destination = vec![0; plan.destination_bytes() as usize];
        plan.run_with(&counting, &source, &mut destination).unwrap();
    };
    run("f32[2048,1024]{1,0:T(8,128)}");
    run("f32[1500,1001]{1,0:T(8,128)}");
    run("f32[1000,1000]{1,0:T(8,128)}");
    let counts = counting.0.into_inner().unwrap();
    assert_eq!(counts.len(), 2, "{counts:?}");
    assert!(counts.iter().all(|&count| count == 4), "{counts:?}");
}
