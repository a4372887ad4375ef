//! What a form must be fed, as its row says.

use super::ENOUGH;
use super::special::{Special, single};
use ptx::forms::{BulkCopy, Constants, Effect, Field, Form, TypeSpec};
use ptx::{Op, Type};

/// Distinct operand sets that a form needs: [`ENOUGH`], or as many as there are. A form that reads no register and no
/// memory has one; its constants are part of the text.
pub fn needed_sets(form: &Form) -> usize {
    let read = form.operands.all.iter().filter(|spec| spec.reads);
    let ways = read.map(|spec| match (spec.field, &spec.constants) {
        (Field::Immediate | Field::Label | Field::Sink | Field::Function, _) => 1,
        (Field::Value(..), Constants::OneOf(all)) => all.len(),
        (Field::Value(TypeSpec::Fixed(Type::Pred), _), _) => 2,
        _ => ENOUGH,
    });
    ways.fold(1, |all, ways| (all * ways).min(ENOUGH))
}

/// Floating-point types of which a form must be fed the special numbers: those that it computes with.
pub fn special_types(form: &Form) -> Vec<Type> {
    let named = |slot: usize| {
        let slots = form.spelling.slots().iter().filter(|slot| slot.is_type);
        slots.skip(slot).take(1).flat_map(|slot| slot.choices.iter().filter_map(|choice| choice.parse().ok()))
    };
    let of_spec = |spec: TypeSpec| -> Vec<Type> {
        match spec {
            TypeSpec::Slot(slot) | TypeSpec::Wide(slot) | TypeSpec::Packed(slot) => named(slot).collect(),
            TypeSpec::Fixed(ty) => vec![ty],
        }
    };
    let read = form.operands.all.iter().filter(|spec| spec.reads);
    let mut types: Vec<Type> = match (form.op, form.effect) {
        // Moves bits, and computes with none.
        (Op::Movement(_) | Op::BulkCopy(BulkCopy::RemoteStore), _) => vec![],
        (_, Effect::Pure) | (Op::Atomic(_), _) => read
            .flat_map(|spec| match spec.field {
                Field::Value(ty, _) | Field::Address(Some((ty, _))) => of_spec(ty),
                _ => vec![],
            })
            .collect(),
        // Its operands lie in memory.
        (Op::Wgmma(_) | Op::BulkCopy(_), _) => (0..3).flat_map(named).collect(),
        _ => vec![],
    };
    types.iter_mut().for_each(|ty| *ty = single(*ty));
    types.retain(|ty| Special::of_type(*ty).next().is_some());
    types.sort();
    types.dedup();
    types
}
