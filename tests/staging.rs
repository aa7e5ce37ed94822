//! Staging: everything arrives, in order, through no more buffers than there are.

mod common;

use std::sync::mpsc;

use common::shape;
use relayout::staging::{Staged, Stager};
use relayout::{Plan, Side};

fn source_of(plan: &Plan) -> Vec<u8> {
    (0..plan.source_bytes()).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn everything_arrives_in_order() {
    for text in ["f32[100,300]{1,0:T(8,128)}", "bf16[77,130]{0,1:T(8,128)(2,1)}", "u8[]", "u8[0,4]"]
    {
        for plan in [Plan::pack(&shape(text)).unwrap(), Plan::unpack(&shape(text)).unwrap()] {
            let source = source_of(&plan);
            let mut expected = vec![0xee; plan.destination_bytes() as usize];
            plan.run(&source, &mut expected).unwrap();
            for buffers in 1..4 {
                // Of different sizes: the smallest counts.
                let sizes = (0..buffers).map(|i| vec![0xaa; 5000 + 1000 * i]);
                let mut stager = Stager::new(sizes);
                // Twice, as a stager can be used again.
                for _ in 0..2 {
                    let (engine, filled) = mpsc::channel::<Staged<Vec<u8>>>();
                    let device = std::thread::spawn(move || {
                        let mut memory = Vec::new();
                        for staged in filled {
                            assert_eq!(staged.destination().start, memory.len() as u64);
                            memory.extend_from_slice(staged.bytes());
                            assert_eq!(staged.destination().end, memory.len() as u64);
                        }
                        memory
                    });
                    for staged in stager.stage(&plan, &source).unwrap() {
                        engine.send(staged.unwrap()).unwrap();
                    }
                    drop(engine);
                    assert!(device.join().unwrap() == expected, "{text}, {buffers} buffers");
                }
            }
        }
    }
}

#[test]
fn a_stager_waits_for_buffers() {
    let plan = Plan::pack(&shape("f32[64,128]{1,0:T(8,128)}")).unwrap();
    let source = source_of(&plan);
    let mut stager = Stager::new([vec![0; 4096], vec![0; 4096]]);
    let (engine, filled) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for staged in stager.stage(&plan, &source).unwrap() {
                engine.send(staged.unwrap()).unwrap();
            }
        });
        let first: Staged<Vec<u8>> = filled.recv().unwrap();
        let second = filled.recv().unwrap();
        // Both buffers are here, so there is no third chunk.
        let wait = std::time::Duration::from_millis(50);
        assert!(filled.recv_timeout(wait).is_err());
        assert_ne!(first.bytes().as_ptr(), second.bytes().as_ptr());
        let place = first.bytes().as_ptr();
        drop(first);
        assert_eq!(filled.recv().unwrap().bytes().as_ptr(), place);
        drop(second);
        assert_eq!(filled.iter().count(), 8 - 3);
    });
}

#[test]
fn buffers_that_hold_nothing_are_refused() {
    let plan = Plan::pack(&shape("f32[8,128]{1,0:T(8,128)}")).unwrap();
    let source = source_of(&plan);
    let error = Stager::<Vec<u8>>::new([]).stage(&plan, &source).err().unwrap();
    assert_eq!((error.side, error.needed_bytes, error.given_bytes), (Side::Destination, 4, 0));
    let error = Stager::new([vec![0; 100], vec![0; 3]]).stage(&plan, &source).err().unwrap();
    assert_eq!((error.side, error.needed_bytes, error.given_bytes), (Side::Destination, 4, 3));
    let error = Stager::new([vec![0; 100]]).stage(&plan, &source[1..]).err().unwrap();
    assert_eq!(error.side, Side::Source);
}

#[test]
fn a_buffer_outlives_its_stager() {
    let plan = Plan::pack(&shape("f32[8,128]{1,0:T(8,128)}")).unwrap();
    let source = source_of(&plan);
    let staged = {
        let mut stager = Stager::new([vec![0; 4096]]);
        stager.stage(&plan, &source).unwrap().next().unwrap().unwrap()
    };
    assert!(staged.bytes() == source);
}

/// A buffer that says another length each time it is asked.
struct Shrinking(Vec<u8>);

impl AsRef<[u8]> for Shrinking {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl AsMut<[u8]> for Shrinking {
    fn as_mut(&mut self) -> &mut [u8] {
        let left = self.0.len() - 1;
        &mut self.0[..left]
    }
}

#[test]
fn a_chunk_that_cannot_be_staged_is_an_error_and_the_last() {
    let plan = Plan::pack(&shape("f32[8,128]{1,0:T(8,128)}")).unwrap();
    let source = source_of(&plan);
    let mut stager = Stager::new([Shrinking(vec![0; 1024])]);
    let mut staged = stager.stage(&plan, &source).unwrap();
    let error = staged.next().unwrap().err().unwrap();
    assert_eq!(error.to_string(), "the destination has 1023 bytes, but 1024 are needed");
    assert!(staged.next().is_none());
}
