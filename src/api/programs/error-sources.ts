/**
 * Error sources: errors that leave the API get the sources into which their spans point, so that their lines can be shown. The methods of
 * a class are wrapped when its first object is created.
 */

import { SptError, withSources } from '../../ast/diagnostics/diagnostic.ts'
import type { Span } from '../../ast/diagnostics/span.ts'
import type { Sources } from '../../run/compile/program.ts'

const UNCLONEABLE = Symbol(
  'sparsetile: what load and a kernel give stays in its thread; send the text of the program and kernel.toJSON(), and there `(await load(text)).kernel(name).replay(steps)`. It',
)

/** A base class that rejects `structuredClone`, because API objects have state outside of their fields. */
abstract class Uncloneable {
  /** A symbol, which `structuredClone` and `postMessage` reject with its description. */
  protected readonly uncloneable = UNCLONEABLE
}

/** Base class of all API objects. */
export abstract class ErrorSources extends Uncloneable {
  /** Sources by name, for `render` of errors. */
  abstract readonly sources: Sources

  constructor() {
    super()
    wrapMethods(new.target.prototype)
  }
}

/** Base class of API objects that are functions: a call is the method `invoke`. */
// biome-ignore lint/suspicious/noUnsafeDeclarationMerging: the interface adds the call signature, and the name of functions.
export abstract class Callable<A extends readonly unknown[], R> extends ErrorSources {
  protected abstract invoke(...args: A): R

  constructor(name: string) {
    super()
    const called = (...args: A): R => (called as unknown as this).invoke(...args)
    Object.defineProperty(called, 'name', { value: name })
    // biome-ignore lint/correctness/noConstructorReturn: a function cannot be made by a class in another way.
    return Object.setPrototypeOf(called, new.target.prototype)
  }

  call(_self: unknown, ...args: A): R {
    return this.invoke(...args)
  }

  apply(_self: unknown, args: A): R {
    return this.invoke(...args)
  }
}
export interface Callable<A extends readonly unknown[], R> {
  (...args: A): R
  /** Name of the kernel. */
  readonly name: string
}

const wrapped = new WeakSet<object>([ErrorSources.prototype])

function wrapMethods(prototype: object): void {
  if (wrapped.has(prototype)) return
  wrapped.add(prototype)
  for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    const { get, value } = member
    if (name === 'constructor' || name === 'sources') continue
    if (get) Object.defineProperty(prototype, name, { ...member, get: withErrorSources(get) })
    if (typeof value === 'function')
      Object.defineProperty(prototype, name, { ...member, value: withErrorSources(value) })
  }
  wrapMethods(Object.getPrototypeOf(prototype) as object)
}

function withErrorSources(method: (...args: unknown[]) => unknown): typeof method {
  const wrapped = function (this: ErrorSources, ...args: unknown[]): unknown {
    return withSources(this, () => method.apply(this, args))
  }
  Object.defineProperty(wrapped, 'name', { value: method.name })
  return Object.defineProperty(wrapped, 'length', { value: method.length })
}

/** Returns an error with the place of the selection that caused it as a label. */
export function withPlace(e: unknown, span: Span): unknown {
  if (!(e instanceof SptError)) return e
  const labelled = new SptError(
    e.diagnostics.map((d) =>
      d.span ? { ...d, labels: [...(d.labels ?? []), { span, text: 'chosen here' }] } : { ...d, span },
    ),
  )
  labelled.sources = e.sources
  return labelled
}
