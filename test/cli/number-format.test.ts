import fc from 'fast-check'
import { expect } from 'vitest'
import { count } from '../../src/cli/output/figures.ts'
import { property } from '../support/property.ts'

property([fc.oneof(fc.maxSafeInteger(), fc.integer({ min: -2000, max: 2000 }), fc.double())])(
  'counts are written as the locale writes them',
  (n) => {
    const value = n === 0 ? 0 : n
    expect(count(value)).toBe(value.toLocaleString('en-US'))
  },
)
