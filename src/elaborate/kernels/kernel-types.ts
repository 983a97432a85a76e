/** Checks of type parameters: their declarations, and lists of types in schedules and base kernels. */

import type * as Ast from '../../ast/nodes/nodes.ts'
import { walkSyntax } from '../../ast/nodes/walk.ts'
import { quantity } from '../../ast/print/quantity.ts'
import { isDtype } from '../../ir/values/dtype.ts'
import { anotherMeaning, errorCount, repeatedIn, report, reportAll } from '../diagnostics.ts'
import { TYPED } from '../instructions/instances.ts'
import { inputsOf } from './call-arguments.ts'

/**
 * The name of an instance: `scale<f16>`; `scale` if every type is f32, the default type of fractions. The
 * name does not depend on the other types of the declaration, because stored measurements contain the name.
 */
export const instanceName = (kernel: string, types: readonly string[]): string =>
  types.every((t) => t === 'f32') ? kernel : `${kernel}<${types.join(', ')}>`

/** The first type of each parameter, in which a kernel without a list of types is used. */
export const firstTypes = (k: Ast.Kernel): readonly string[] => k.typeParams.map((p) => p.types[0]!.name)

/** True if each type parameter is used, under a name without another meaning, and lists each type once. */
export function checkTypeParameters(decl: Ast.Kernel): boolean {
  const before = errorCount()
  const names = [
    ...decl.params.map((p) => p.name),
    ...decl.members.flatMap((m) => ('name' in m ? m.name : [])),
  ].map((n) => n.name)
  for (const [k, { name, types }] of decl.typeParams.entries()) {
    for (const { name: type } of repeatedIn(types))
      report('check/duplicate', type.span, {
        message: `${type.name} is listed twice among the types of ${name.name}`,
        hint: `remove one \`${type.name}\``,
      })
    if (decl.typeParams.findIndex((p) => p.name.name === name.name) < k)
      report('check/duplicate', name.span, {
        message: `kernel ${decl.name.name} has two type parameters ${name.name}`,
        hint: `rename a type parameter ${name.name}`,
      })
    else if (names.includes(name.name) || isDtype(name.name))
      anotherMeaning(name, `kernel ${decl.name.name}`, 'choose another name for the type')
    else if (!usesType([decl.params, decl.base, decl.members], name.name))
      report('check/unused-type', name.span, {
        message: `kernel ${decl.name.name} does not use the type ${name.name}`,
        expected: `a buffer, a parameter or a conversion of the type: \`buffer A: ${name.name}[i] in\``,
        hint: `remove ${name.name}`,
      })
  }
  return errorCount() === before
}

/** True if each list of types names types of the corresponding parameter; an empty list stands for every type. */
export function checkTypes(
  given: readonly (readonly Ast.Ident[])[],
  decl: Ast.Kernel,
  span: Ast.Ident['span'],
): boolean {
  const kernel = decl.name.name
  const all = decl.typeParams.map((p) => p.types.map((t) => t.name))
  const wrong = { code: 'check/kernel-types', span }
  if (given.length === 0) return true
  if (given.length !== all.length) {
    const example = `${kernel}<${firstTypes(decl).join(', ')}>`
    reportAll({
      ...wrong,
      message: `kernel ${kernel} has ${quantity(all.length, 'type parameter')}, not ${given.length}`,
      hint: `write \`${all.length === 0 ? kernel : example}\``,
    })
    return false
  }
  const odd = given.flatMap((list, k) =>
    list.flatMap((t) => (all[k]!.some((x) => x === t.name) ? [] : [{ t, types: all[k]! }])),
  )
  for (const { t, types } of odd)
    reportAll({
      ...wrong,
      span: t.span,
      message: `kernel ${kernel} has no instance for ${t.name}`,
      expected: types.join(' or '),
      hint: `write one of ${types.join(', ')}, or add ${t.name} to the types of kernel ${kernel}`,
    })
  return odd.length === 0
}

function usesType(part: unknown, type: string): boolean {
  let isUsed = false
  walkSyntax(part, ({ kind, name }, key) => {
    isUsed ||= name === type && (kind === 'name' || TYPED.has(key))
  })
  return isUsed
}

/** The types of the first buffers that have the type parameters, where an instance accepts them. */
export function typesFor(decl: Ast.Kernel, passed: readonly Ast.BufferDecl[]): readonly string[] {
  const ins = inputsOf(decl)
  return decl.typeParams.map((p) => {
    const at = ins.findIndex((b) => b.type.name === p.name.name)
    const type = passed[at]?.type.name
    return p.types.find((t) => t.name === type)?.name ?? p.types[0]!.name
  })
}

/** Every list of types of a kernel. */
export const allTypes = (k: Ast.Kernel): readonly (readonly string[])[] =>
  k.typeParams.reduce<readonly (readonly string[])[]>(
    (lists, p) => lists.flatMap((list) => p.types.map((t) => [...list, t.name])),
    [[]],
  )
