//! How long and for whom answers may be kept.
