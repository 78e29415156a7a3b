"""The compiled backend: C++ behind the contract."""
