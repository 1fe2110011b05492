//! Arguments and messages of prompts.
