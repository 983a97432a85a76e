/** The pages of docs/explanation: their blocks run. */
import { executes } from './site.ts'

executes('docs/explanation')
