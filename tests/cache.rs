//! The cache gives back the plan that was asked for, and no other.

mod common;

use std::sync::Arc;

use common::shape;
use relayout::{BitOrder, Host, Padding, PlanBuilder, PlanCache, Tier};

#[test]
fn everything_that_shapes_a_plan_tells_it_apart() {
    let cache = PlanCache::new(1000);
    let u4 = shape("u4[8,8]{1,0:T(8,128)(8,1)E(4)}");
    let usual = PlanBuilder::new;
    let builders = [
        usual(),
        usual().tier(Tier::SCALAR),
        usual().padding(Padding::Keep),
        usual().padding(Padding::Byte(0)),
        usual().padding(Padding::Byte(1)),
        usual().streaming(true),
        usual().streaming(false),
        usual().host(Host::strided([8, 1])),
        usual().host(Host::strided([16, 1])),
        usual().host(Host::strided([8, 1]).starting_at(1)),
        usual().host(Host::window([8, 8], [0, 0])),
        usual().host(Host::window([9, 8], [0, 0])),
        usual().host(Host::dense().packed(BitOrder::LeastFirst)),
        usual().host(Host::dense().packed(BitOrder::MostFirst)),
        usual().window([0, 0], [8, 8]),
        usual().window([0, 0], [8, 7]),
    ];
    let shapes = [u4.clone(), shape("u4[8,8]{0,1:T(8,128)(8,1)E(4)}"), shape("u4[8,8]{1,0}")];
    let mut plans = Vec::new();
    // Twice, the second time in another order: the same plans as the first time.
    for round in 0..2 {
        let mut again = Vec::new();
        for shape in &shapes {
            for builder in &builders {
                // A strided array of packed elements would have one stride.
                again.extend(cache.pack(builder, shape));
                again.extend(cache.unpack(builder, shape));
                again.push(cache.between(builder, &u4, shape).unwrap());
                again.push(cache.between(builder, shape, &u4).unwrap());
            }
        }
        if round == 0 {
            plans = again;
        } else {
            assert_eq!(plans.len(), again.len());
            assert!(plans.iter().zip(&again).all(|(a, b)| Arc::ptr_eq(a, b)));
        }
    }
    // From u4 to itself is the same in both orders; all else is different.
    assert_eq!(cache.len(), plans.len() - builders.len());
    assert!(cache.pack(&usual(), &shape("f32[?]")).is_err());
    assert_eq!(cache.len(), plans.len() - builders.len());
}

#[test]
fn what_was_not_used_for_longest_goes_first() {
    let cache = PlanCache::new(3);
    let builder = PlanBuilder::new();
    let get = |n: usize| cache.pack(&builder, &shape(&format!("u8[{n}]{{0}}"))).unwrap();
    let first: Vec<_> = (1..4).map(get).collect();
    assert!(Arc::ptr_eq(&first[0], &get(1)));
    get(4);
    assert_eq!(cache.len(), 3);
    assert!(Arc::ptr_eq(&first[0], &get(1)));
    assert!(Arc::ptr_eq(&first[2], &get(3)));
    // Two was forgotten, and is made again.
    assert!(!Arc::ptr_eq(&first[1], &get(2)));
    assert_eq!(cache.len(), 3);

    let none = PlanCache::new(0);
    none.pack(&builder, &shape("u8[1]{0}")).unwrap();
    assert!(none.is_empty());
}

#[test]
fn threads_share_a_cache() {
    let cache = PlanCache::new(5);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                for i in 0..300 {
                    let n = (i * 7 + thread) % 9 + 1;
                    let plan = cache.pack(&PlanBuilder::new(), &shape(&format!("u8[{n}]{{0}}")));
                    assert_eq!(plan.unwrap().source_bytes(), n);
                }
            });
        }
    });
    assert_eq!(cache.len(), 5);
}
