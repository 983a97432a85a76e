/** Kernels that are declared as gradients of others: `gradient step of sage by loss wrt (W)`. */
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import type { Scope } from '../../ast/imports/linked-program.ts'
import type * as Ast from '../../ast/nodes/nodes.ts'
import { gradient } from '../../derive/gradient.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { report, reportAll } from '../diagnostics.ts'
import { declarationIn } from '../formats/format-uses.ts'
import { instanceName } from './kernel-instances.ts'

/** Derives declared gradients; `kernelOf` elaborates the kernel that a gradient names. */
export function declaredGradients(
  scopeOf: (k: Ast.Kernel) => Scope,
  kernelOf: (k: Ast.Kernel) => Kernel1 | null,
): (k: Ast.Kernel, g: Ast.GradientOf, name: string) => Kernel1 | null {
  // Gradients that are being derived, which must not be of themselves.
  const open: Ast.Kernel[] = []
  return (k, { of, by, wrt, stopping, span }, name) => {
    const scope = scopeOf(k)
    const id = {
      ...of.name,
      name: instanceName(
        of.name.name,
        of.types.map((t) => t.name),
      ),
    }
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
    if (!source) return null
    const derived = resultOrError(() => gradient(source, { name, by, wrt, stopping, span }))
    return derived instanceof SptError ? reportAll(...derived.diagnostics) : derived
  }
}
