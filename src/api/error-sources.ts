/**
 * Where errors leave the API: they have the texts that their spans point into, so that their lines can be shown. Methods are
 * wrapped where a class makes its first object, so that none has to think of it.
 */
import { withSources } from '../ast/diagnostic.ts'
import type { Sources } from '../run/launch-spans.ts'
import { Uncloneable } from './uncloneable.ts'

/** A base class of what users call. */
export abstract class ErrorSources extends Uncloneable {
  /** Texts by name, for `render` of errors. */
  abstract readonly sources: Sources

  constructor() {
    super()
    wrapMethods(new.target.prototype)
  }
}

const wrapped = new WeakSet<object>([ErrorSources.prototype])

function wrapMethods(prototype: object): void {
  if (wrapped.has(prototype)) return
  wrapped.add(prototype)
  for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    const { get, value } = member
    if (name === 'constructor' || name === 'sources') continue
    if (get) Object.defineProperty(prototype, name, { ...member, get: telling(get) })
    if (typeof value === 'function')
      Object.defineProperty(prototype, name, { ...member, value: telling(value) })
  }
  wrapMethods(Object.getPrototypeOf(prototype) as object)
}

function telling(method: (...args: unknown[]) => unknown): typeof method {
  const told = function (this: ErrorSources, ...args: unknown[]): unknown {
    return withSources(this, () => method.apply(this, args))
  }
  Object.defineProperty(told, 'name', { value: method.name })
  return Object.defineProperty(told, 'length', { value: method.length })
}
