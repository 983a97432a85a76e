/** Kernels that are declared as gradients of others: `gradient step of sage by loss wrt (W)`. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Scope } from '../../ast/imports/linked-program.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { mapSyntax } from '../../ast/nodes/walk.ts'
import { parseWithoutSteps } from '../../ast/parse/parse.ts'
import { gradient } from '../../derive/gradient.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { declaredMonoids } from '../../ir/coordinates/stage1-tree.ts'
import { print1 } from '../../ir/print/print-stage1.ts'
import { report, reportAll } from '../diagnostics.ts'
import { declarationIn } from '../formats/format-uses.ts'
import { instanceName } from './kernel-types.ts'

/** A derived kernel as declarations. */
export interface GradientText {
  readonly kernel: Ast.Kernel
  readonly monoids: ReadonlyMap<string, Ast.Monoid>
}

/** The declarations of a derived kernel, in a file of their own. Reducers without a declaration get the kernel's name. */
export function gradientText(derived: Kernel1, { span }: Ast.Kernel): GradientText {
  const name = `${span.source} (gradient ${derived.name})`
  const reducers = declaredMonoids(derived.body)
  const parsed = parseWithoutSteps({ name, text: print1(derived) })
  const decls = mapSyntax(parsed.decls, (node) => {
    const reducer = typeof node.name === 'string' ? reducers.get(node.name) : undefined
    return reducer && !reducer.span ? { ...node, name: `${derived.name}_${reducer.name}` } : undefined
  })
  const monoids = decls.filter((d) => d.kind === 'monoid').map((d) => [d.name.name, d] as const)
  return { kernel: decls.find((d) => d.kind === 'kernel')!, monoids: new Map(monoids) }
}

/** Derives a gradient. Returns null after a reported error. */
export function deriveDeclared(source: Kernel1, g: Ast.GradientOf, name: string): Kernel1 | null {
  const { by, wrt, stopping, recomputing, rounding, span } = g
  const derived = resultOrError(() =>
    gradient(source, { name, by, wrt, stopping, recomputing, rounding, span }),
  )
  return derived instanceof SptError ? reportAll(...derived.diagnostics) : derived
}

/**
 * Derives declared gradients.
 * @param isInvalid - True for a kernel of the program that has no instance, because of reported errors
 * @param kernelOf - Elaborates the kernel that a gradient names
 */
export function declaredGradients(
  scopeOf: (k: Ast.Kernel) => Scope,
  isInvalid: (name: Ast.Ident, scope: Scope) => boolean,
  kernelOf: (k: Ast.Kernel) => Kernel1 | null,
): (k: Ast.Kernel, g: Ast.GradientOf, name: string) => Kernel1 | null {
  // Gradients that are being derived, which must not be of themselves.
  const open: Ast.Kernel[] = []
  return (k, g, name) => {
    const { of } = g
    const scope = scopeOf(k)
    const id = {
      ...of.name,
      name: instanceName(
        of.name.name,
        of.types.map((t) => t.name),
      ),
    }
    if (isInvalid(id, scope)) return null
    const decl = declarationIn(scope.kernels, id, scope, () => ({
      code: 'check/unknown-kernel',
      message: `there is no kernel ${id.name}`,
      span: id.span,
      lookup: { name: id.name, candidates: [...scope.kernels.keys()] },
    }))
    if (!decl) return null
    if (open.includes(decl) || decl === k)
      return report('check/kernel-cycle', id.span, {
        message: `kernel ${id.name} is a gradient of itself`,
        expected: 'a kernel with statements',
      })
    open.push(k)
    const source = kernelOf(decl)
    open.pop()
    return source && deriveDeclared(source, g, name)
  }
}
