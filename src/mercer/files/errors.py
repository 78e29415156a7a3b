"""What is wrong with a model file, or with a machine that is to become one."""


class ModelFormatError(ValueError):
    """A file that is no model of Mercer, or a machine that no file can hold; says where and why.

    Examples
    --------
    >>> import mercer
    >>> mercer.load("/dev/null")
    Traceback (most recent call last):
    mercer.files.errors.ModelFormatError: /dev/null: the file is empty
    """
